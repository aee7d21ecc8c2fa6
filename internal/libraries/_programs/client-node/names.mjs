// state is the label that operations write.
export const state = 'skewproof.example/state';

// parseResource reads RESOURCE.VERSION.GROUP as client-node's custom objects take it.
export function parseResource(text) {
  const [plural, version, ...group] = text.split('.');
  if (!plural || !version || group.length === 0) {
    throw new Error(`"${text}" is not RESOURCE.VERSION.GROUP`);
  }
  return { plural, version, group: group.join('.') };
}

// input is the object on standard input.
export async function input() {
  let text = '';
  for await (const part of process.stdin.setEncoding('utf8')) {
    text += part;
  }
  return JSON.parse(text);
}

// labelled is the object with a value of the label.
export function labelled(object, value) {
  return { ...object, metadata: { ...object.metadata, labels: { ...object.metadata.labels, [state]: value } } };
}

// reason is the message of the server if there is one.
export function reason(err) {
  let body = err?.body;
  try {
    body = typeof body === 'string' ? JSON.parse(body) : body;
  } catch {
    // The body is no Status: it is shown as it is.
  }
  return body?.message ?? (typeof body === 'string' && body.trim() ? body.trim() : undefined) ?? err?.message ?? String(err);
}
