import { expect } from 'chai';

export type StreamMessage = {
  readonly id: string | undefined;
  readonly data: { readonly id: string; readonly status: string; readonly updatedAt: string };
};

export type EventStream = {
  readonly status: number;
  readonly headers: Headers;
  /** The next message; undefined when the stream has ended. */
  next(): Promise<StreamMessage | undefined>;
  leave(): void;
};

const WAIT_TIMEOUT_MS = 5_000;

/** Reads server-sent events the way a browser does (WHATWG HTML section 9.2). */
export async function openStream(address: string, headers: Readonly<Record<string, string>> = {}): Promise<EventStream> {
  const abort = new AbortController();
  const answer = await fetch(address, { headers: { ...headers }, signal: abort.signal });
  expect(answer.status, answer.status === 200 ? '' : await answer.clone().text()).to.equal(200);
  const messages = read(answer.body as ReadableStream<Uint8Array>);
  return {
    status: answer.status,
    headers: answer.headers,
    async next() {
      const { value } = await within(messages.next());
      return value as StreamMessage | undefined;
    },
    leave: () => abort.abort(),
  };
}

async function* read(body: ReadableStream<Uint8Array>): AsyncGenerator<StreamMessage> {
  const decoder = new TextDecoder();
  let text = '';
  for await (const chunk of body) {
    text += decoder.decode(chunk, { stream: true });
    for (let end = text.indexOf('\n\n'); end !== -1; end = text.indexOf('\n\n')) {
      const lines = text.slice(0, end).split('\n');
      text = text.slice(end + 2);
      const field = (name: string) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = field('data');
      if (data !== undefined) yield { id: field('id'), data: JSON.parse(data) };
    }
  }
}

function within<T>(promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error('the stream stayed silent')), WAIT_TIMEOUT_MS);
  });
  return Promise.race([promise, timeout]).finally(() => clearTimeout(timer));
}
