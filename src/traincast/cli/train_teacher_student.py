"""`traincast train teacher-student`: few labels, many images without."""

from traincast.api.recipes import plan_teacher_student
from traincast.cli.command import CommandLine, command
from traincast.cli.train_flow import planned, train, train_own


@command(plan_teacher_student, own=train_own)
def teacher_student(line: CommandLine) -> None:
    """Does a student that is pretrained on what its teacher selects beat the teacher?

    Examples: traincast train teacher-student; traincast train teacher-student --labeled 10% --k 50 --k 200 --p 1
    --p 3 --seeds 5
    """
    from traincast.views.train_teacher_student import teacher_student_document

    train(line, planned(line, plan_teacher_student), teacher_student_document)
