import { Pool } from 'undici';

export type Answer = {
  readonly status: number;
  readonly text: string;
  /** The target of a redirect. */
  readonly location?: string;
};

/** Called around each request, such as `POST /bench/token`. */
export type Around = (step: string, send: () => Promise<Answer>) => Promise<Answer>;

/** Keep-alive connections to the service, as few as there are wallets. */
export class HttpClient {
  readonly #pool: Pool;
  readonly #around: Around;

  constructor(origin: string, connections: number, around: Around = (_, send) => send()) {
    this.#around = around;
    this.#pool = new Pool(origin, { connections, pipelining: 1, headersTimeout: 30_000 });
  }

  get(path: string, headers: Record<string, string> = {}): Promise<Answer> {
    return this.#request('GET', path, headers);
  }

  postJson(path: string, body: unknown, headers: Record<string, string> = {}): Promise<Answer> {
    const jsonHeaders = { ...headers, 'content-type': 'application/json' };
    return this.#request('POST', path, jsonHeaders, JSON.stringify(body));
  }

  postForm(path: string, body: Record<string, string>, headers: Record<string, string> = {}): Promise<Answer> {
    const formHeaders = { ...headers, 'content-type': 'application/x-www-form-urlencoded' };
    return this.#request('POST', path, formHeaders, new URLSearchParams(body).toString());
  }

  post(path: string): Promise<Answer> {
    return this.#request('POST', path, {});
  }

  close(): Promise<void> {
    return this.#pool.close();
  }

  #request(method: 'GET' | 'POST', path: string, headers: Record<string, string>, body?: string): Promise<Answer> {
    return this.#around(`${method} ${path}`, () => this.#send(method, path, headers, body));
  }

  async #send(method: 'GET' | 'POST', path: string, headers: Record<string, string>, body?: string): Promise<Answer> {
    const options = { method, path, headers, ...(body === undefined ? {} : { body }) };
    const response = await this.#pool.request(options);
    const { location } = response.headers;
    return { status: response.statusCode, text: await response.body.text(), ...(typeof location === 'string' && { location }) };
  }
}

/** An answer that is not what the contract says. */
export class WrongAnswer extends Error {
  constructor(step: string, detail: string) {
    super(`${step}: ${detail}`);
    this.name = 'WrongAnswer';
  }
}

/** @returns the properties of a JSON response. @throws WrongAnswer for another status or content type. */
export function json(step: string, answer: Answer, status: number): Readonly<Record<string, unknown>> {
  expectStatus(step, answer, status);
  const value: unknown = JSON.parse(answer.text);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new WrongAnswer(step, 'not an object');
  return value as Readonly<Record<string, unknown>>;
}

export function expectStatus(step: string, answer: Answer, status: number): void {
  if (answer.status !== status) throw new WrongAnswer(step, `${answer.status} ${answer.text.slice(0, 300)}`);
}

export function text(step: string, properties: Readonly<Record<string, unknown>>, name: string): string {
  const value = properties[name];
  if (typeof value !== 'string') throw new WrongAnswer(step, `${name} is not a string`);
  return value;
}

export function pathFromLocation(address: string | null): string {
  if (address === null || address === '') throw new WrongAnswer('address', 'missing');
  const url = new URL(address);
  return url.pathname + url.search;
}

/** Decodes the payload of a JWT or an SD-JWT without verification. */
export function decodePayload(jwt: string): Readonly<Record<string, unknown>> {
  const [, payload = ''] = jwt.split('~', 1).join('').split('.');
  return JSON.parse(Buffer.from(payload, 'base64url').toString()) as Readonly<Record<string, unknown>>;
}
