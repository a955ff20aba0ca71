import { VidimusError } from './vidimus-error.ts';

export type StreamEvent = { readonly id: string | undefined; readonly data: string };

/** Limit of an event; events of sessions have a few hundred characters. */
const MAX_EVENT_CHARACTERS = 65_536;

/**
 * Reads server-sent events (WHATWG HTML section 9.2.6).
 * @param idleMs limit for the silence of the stream; comments count, and the service sends one every 15 seconds.
 * @throws VidimusError when the stream breaks or stays silent.
 */
export async function* readEvents(body: ReadableStream<Uint8Array>, idleMs: number): AsyncGenerator<StreamEvent, void, undefined> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let [buffer, event] = ['', {} as Partial<StreamEvent>];
  try {
    for (;;) {
      const part = await within(reader.read(), idleMs);
      if (part.done) return;
      const lines = (buffer + decoder.decode(part.value, { stream: true })).split(/\r\n|\n|\r(?!$)/);
      buffer = lines.pop() ?? '';
      for (const line of lines) {
        if (line === '' && event.data !== undefined) yield { id: event.id, data: event.data };
        event = line === '' ? {} : withLine(event, line);
      }
      if (buffer.length + (event.data?.length ?? 0) > MAX_EVENT_CHARACTERS) {
        throw new VidimusError('unexpected_answer', 'the event is too long');
      }
    }
  } finally {
    // Also closes the connection when the consumer stops iterating.
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
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new VidimusError('timeout', 'the event stream sends no data')), ms);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}
