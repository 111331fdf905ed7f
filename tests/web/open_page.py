"""What tests of the page share: links, logs, and what somebody waits for or does."""

from playwright.sync_api import expect

PATIENCE_MS = 30_000
SMALL = "?model=cifar_resnet20&on=T4&batch_size=64&n_samples=50000&n_epochs=10&precision=fp32"
QUICK = "?model=cifar_resnet20&on=T4&batch_size=64&n_epochs=1"  # without samples there is no plan to wait for
LOG = "step,loss,seconds\n" + "".join(
    f"{step},{0.5 + 4.0 / (1 + step / 50):.5f},{0.25 * step:.2f}\n" for step in range(10, 400, 10)
)

BOTH = "step,loss,accuracy,f1\n" + "".join(
    f"{step},{0.3 + 2.0 / (1 + step / 50):.5f},{0.95 - 0.85 / (1 + step / 60):.5f},{0.9 - 0.8 / (1 + step / 60):.5f}\n"
    for step in range(10, 400, 10)
)


def answered(page, name):
    expect(page.locator("#status")).to_have_text(f"Answered for {name}.", timeout=PATIENCE_MS)


def card(page, label):
    return page.locator(f"#forecast .card dd.{label}").first


def drop_file(page, selector, name, content):
    """As if a file were dragged there from the desktop."""
    carried = page.evaluate_handle(
        "([name, content]) => { const carried = new DataTransfer(); carried.items.add(new File([content], name));"
        " return carried; }",
        [name, content],
    )
    page.dispatch_event(selector, "drop", {"dataTransfer": carried})
