import { expectSuccess, NoControl } from '../core/case.ts';
import type { Answer, HttpClient, Json } from '../core/http.ts';

/** The parts of the Vidimus REST API in use: fresh offers and requests, and their results. */
export class VidimusApi {
  readonly #http: HttpClient;
  readonly #base: string;
  readonly #client: { readonly id: string; readonly secret: string };
  #token: string | undefined;

  constructor(http: HttpClient, base: string, id: string, secret: string) {
    this.#http = http;
    this.#base = base.replace(/\/$/, '');
    this.#client = { id, secret };
  }

  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    const headers = { Authorization: `Bearer ${await this.#access()}`, 'Content-Type': 'application/json' };
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    return this.#http.call(this.#base + path, { method, headers, ...content });
  }

  async ids(path: string): Promise<string[]> {
    const answer = expectSuccess(await this.call('GET', path), `GET ${path}`);
    const entries: Json[] = Array.isArray(answer.json) ? answer.json : (answer.json.items ?? []);
    return entries.map(({ id }) => String(id));
  }

  /** @returns the link and the session. */
  async make(path: string, body: object): Promise<{ uri: string; session: string }> {
    const answer = await this.call('POST', path, { response_type: 'uri', ...body });
    expectSuccess(answer, `POST ${path}`);
    return answer.json;
  }

  async sessionStatus(session: string): Promise<string> {
    return String((await this.call('GET', `/session/${encodeURIComponent(session)}`)).json.status);
  }

  async #access(): Promise<string> {
    if (this.#token !== undefined) return this.#token;
    const { id, secret } = this.#client;
    const body = { grant_type: 'client_credentials', client_id: id, client_secret: secret };
    const answer = await this.#http.json(`${this.#base}/oauth2/token`, body);
    if (typeof answer.json.access_token !== 'string')
      throw new NoControl(
        `no access token for ${id}: ${answer.status === 0 ? 'nobody answers' : answer.status} ${answer.json.error_description ?? ''}`,
      );
    const token: string = answer.json.access_token;
    this.#token = token;
    return token;
  }
}
