import http from 'node:http';
import https from 'node:https';
import { type Gate, isLoopback } from './gate.ts';
import { Skip } from './skip.ts';

/** Timeout of a response in milliseconds. */
const PATIENCE_MS = 10_000;
/** Limit of body bytes for remote hosts, which are never put under load. */
const MAX_FOREIGN_ANSWER_BYTES = 64 * 1024;
const LARGEST_ANSWER = 8 * 1024 * 1024;
/** Number and duration of retries for "too many requests". */
const BUSY = { tries: 3, longestSeconds: 60 } as const;

// biome-ignore lint/suspicious/noExplicitAny: answers of a tested server can have any shape
export type Json = any;

export type Call = {
  readonly method?: string;
  /** A list sends the header several times. */
  readonly headers?: Readonly<Record<string, string | readonly string[]>>;
  readonly body?: string | Buffer;
};

export type Answer = {
  /** 0 when the connection was closed without a response, -1 after a timeout. */
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The parsed body; an empty object unless it is JSON. */
  readonly json: Json;
};

/** The only HTTP client for the target: it checks every address, follows no redirects, and limits every wait. */
export class HttpClient {
  readonly #gate: Gate;
  readonly #agents: { readonly http: http.Agent; readonly https: https.Agent };
  calls = 0;

  constructor(gate: Gate) {
    this.#gate = gate;
    const options = { keepAlive: true, maxSockets: 64 };
    this.#agents = { http: new http.Agent(options), https: new https.Agent(options) };
  }

  close(): void {
    this.#agents.http.destroy();
    this.#agents.https.destroy();
  }

  mayRace(address: string): boolean {
    return isLoopback(new URL(address).hostname);
  }

  async call(address: string, call: Call = {}): Promise<Answer> {
    for (let tries = 1; ; tries++) {
      const answer = await this.#once(address, call);
      if (answer.status !== 429 || tries >= BUSY.tries) return answer;
      const seconds = Number(answer.headers['retry-after'] ?? 1);
      if (!(seconds <= BUSY.longestSeconds)) return answer;
      await new Promise((resolve) => setTimeout(resolve, Math.max(seconds, 1) * 1000));
    }
  }

  form(address: string, fields: Fields, headers: Call['headers'] = {}): Promise<Answer> {
    return this.call(address, {
      method: 'POST',
      headers: { 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      body: encodeForm(fields),
    });
  }

  json(address: string, body: unknown, headers: Call['headers'] = {}): Promise<Answer> {
    const allHeaders = { 'Content-Type': 'application/json', ...headers };
    return this.call(address, { method: 'POST', headers: allHeaders, body: JSON.stringify(body) });
  }

  async #once(address: string, call: Call): Promise<Answer> {
    const url = this.#gate.admit(address);
    if (!isLoopback(url.hostname) && Buffer.byteLength(call.body ?? '') > MAX_FOREIGN_ANSWER_BYTES) {
      throw new Skip('large bodies are sent to targets on this machine alone');
    }
    await this.#gate.turn(url);
    this.calls++;
    return new Promise((resolve, reject) => this.#send(url, call, true, resolve, reject));
  }

  #send(url: URL, call: Call, mayRetry: boolean, resolve: (answer: Answer) => void, reject: (error: Error) => void): void {
    const body = call.body === undefined ? undefined : Buffer.from(call.body);
    const secure = url.protocol === 'https:';
    let request: http.ClientRequest;
    try {
      request = (secure ? https : http).request(url, {
        method: call.method ?? 'GET',
        agent: secure ? this.#agents.https : this.#agents.http,
        headers: { ...call.headers, ...(body === undefined ? {} : { 'Content-Length': body.length }) } as never,
      });
    } catch (error) {
      reject(error as Error);
      return;
    }
    const ends = setTimeout(() => {
      resolve(emptyAnswer(-1, 'no answer in time'));
      request.destroy();
    }, PATIENCE_MS);
    request.on('response', (response) => {
      const chunks: Buffer[] = [];
      let size = 0;
      const done = () => {
        clearTimeout(ends);
        resolve(answerOf(response, Buffer.concat(chunks).toString('utf8')));
      };
      response.on('data', (chunk: Buffer) => {
        size += chunk.length;
        if (size > LARGEST_ANSWER) request.destroy();
        else chunks.push(chunk);
      });
      response.on('end', done);
      response.on('error', done);
      response.on('close', done);
    });
    request.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(ends);
      // A kept-alive connection that was closed meanwhile is no result of this call.
      if (mayRetry && request.reusedSocket && error.code === 'ECONNRESET') {
        this.#send(url, call, false, resolve, reject);
      } else resolve(emptyAnswer(0, error.code ?? error.message));
    });
    request.end(body);
  }
}

export type Fields = Readonly<Record<string, string | undefined>> | readonly (readonly [string, string])[];

/** Undefined properties are omitted; pairs may repeat a name. */
export function encodeForm(fields: Fields): string {
  const pairs = Array.isArray(fields) ? fields : Object.entries(fields);
  return new URLSearchParams(pairs.filter((pair): pair is [string, string] => pair[1] !== undefined)).toString();
}

function emptyAnswer(status: number, text: string): Answer {
  return { status, headers: {}, text, json: {} };
}

function answerOf(response: http.IncomingMessage, text: string): Answer {
  const headers = Object.fromEntries(Object.entries(response.headers).map(([name, value]) => [name, String(value)]));
  return { status: response.statusCode ?? 0, headers, text, json: parsed(text) };
}

function parsed(text: string): Json {
  try {
    return JSON.parse(text) ?? {};
  } catch {
    return {};
  }
}
