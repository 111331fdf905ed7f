// Calls of the API, and a sentence where one fails.

const PATIENCE_S = 20;
const SEEN_BYTES = 2 ** 20; // of a config.json, in which the names of a thousand classes may come first
const listener = { slow: () => {} };

// A server that hangs, or a tunnel that is gone, refuses nothing: `tell` gets a sentence, and the answer may still come.
export function onSlow(tell) {
  listener.slow = () => tell(`No answer for ${PATIENCE_S} seconds: the server is busy, or cannot be reached any more.`);
}

export async function call(path, options) {
  const timer = setTimeout(() => listener.slow(), 1000 * PATIENCE_S);
  try {
    const reply = await fetch(path, options);
    const isJson = reply.headers.get("content-type")?.startsWith("application/json");
    const content = isJson ? await reply.json() : { error: `The server answered with status ${reply.status}.` };
    if (!reply.ok) throw new Error(content.error);
    return content;
  } finally {
    clearTimeout(timer);
  }
}

// A sentence for what went wrong, or nothing where the question was taken back.
export function sentenceOf(error) {
  if (error.name === "AbortError") return "";
  return error instanceof TypeError ? "The server cannot be reached: is it still running?" : error.message;
}

// A running job goes on writing, and the browser does not send a file that has changed since it was chosen.
async function contentOf(file) {
  try {
    return await file.arrayBuffer();
  } catch {
    throw new Error(`${file.name} has changed since it was chosen: choose it or drop it again.`);
  }
}

// Whether a file is to be asked about, and not continued: a saved trace, an ONNX file, a Hugging Face config.json.
export async function isModel(file) {
  if (/\.(onnx|trace)$/i.test(file.name)) return true;
  const start = await file.slice(0, SEEN_BYTES).text().catch(() => ""); // what cannot be read is told when it is sent
  return /^(traincast-trace |\x08[\x01-\x1f])/.test(start)
    || (start.trimStart().startsWith("{") && start.includes('"model_type"'));
}

export async function upload(path, file, query, signal) {
  return call(`${path}?${new URLSearchParams([["name", file.name], ...query])}`, {
    method: "POST", signal, headers: { "Content-Type": "application/octet-stream" }, body: await contentOf(file) });
}
