import { VidimusError } from './vidimus-error.ts';

export type StreamEvent = { readonly id: string | undefined; readonly data: string };

/** An event of a session has some hundred. */
const MAX_EVENT_CHARACTERS = 65_536;

/**
 * Reads server-sent events (WHATWG HTML section 9.2.6).
 * @param idleMs how long the stream may be silent; comments count, and the service sends one every 15 seconds.
 * @throws VidimusError when it breaks off or stays silent.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>, idleMs: number): AsyncGenerator<StreamEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let [rest, event] = ['', {} as Partial<StreamEvent>];
  try {
    for (;;) {
      const part = await within(reader.read(), idleMs);
      if (part.done) return;
      const lines = (rest + decoder.decode(part.value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
      rest = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '' && event.data !== undefined) yield { id: event.id, data: event.data };
        event = line === '' ? {} : withLine(event, line);
      }
      if (rest.length + (event.data?.length ?? 0) > MAX_EVENT_CHARACTERS) {
        throw new VidimusError('unexpected_answer', 'an event that is too long');
      }
    }
  } finally {
    // Also when nobody wants more of it, so that the connection ends.
    void reader.cancel().catch(() => undefined);
  }
}

function withLine(event: Partial<StreamEvent>, line: string): Partial<StreamEvent> {
  const [, name, value = ''] = /^([^:]*):? ?(.*)$/.exec(line) ?? [];
  if (name === 'id') return { ...event, id: value };
  if (name !== 'data') return event;
  return { ...event, data: event.data === undefined ? value : `${event.data}\n${value}` };
}

function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new VidimusError('timeout', 'the stream of events is silent')), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}
