/** A customer's backend as far as the administrative REST API goes: plain HTTP and JSON. */
export class AdminClient {
  readonly #address: string;
  readonly #clientId: string;
  readonly #secret: string;
  #token: string | undefined;

  constructor(address: string, clientId: string, secret: string) {
    this.#address = address;
    this.#clientId = clientId;
    this.#secret = secret;
  }

  async token(): Promise<string> {
    if (this.#token !== undefined) return this.#token;
    const answer = await fetch(`${this.#address}/oauth2/token`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ grant_type: 'client_credentials', client_id: this.#clientId, client_secret: this.#secret }),
    });
    if (!answer.ok) throw new Error(`no access token for ${this.#clientId}: ${answer.status} ${await answer.text()}`);
    const { access_token: token } = (await answer.json()) as { access_token: string };
    this.#token = token;
    return token;
  }

  get<T = Record<string, unknown>>(path: string): Promise<T> {
    return this.#call<T>('GET', path);
  }

  post<T = Record<string, unknown>>(path: string, body?: unknown): Promise<T> {
    return this.#call<T>('POST', path, body);
  }

  delete(path: string): Promise<unknown> {
    return this.#call('DELETE', path);
  }

  async #call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(this.#address + path, {
      method,
      headers: { Authorization: `Bearer ${await this.token()}`, ...(body === undefined ? {} : { 'Content-Type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} answered ${answer.status}: ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }
}
