import { expect } from 'chai';
import { TestRegistrar } from './registrar.ts';
import { type Answer, createTenant, startTestService, type TestService } from './test-service.ts';

export const REGISTERED_QUERY = {
  credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid:1'] }, claims: [{ path: ['given_name'] }] }],
};
/** The query in the format of the registrar. */
export const REGISTERED_CREDENTIALS = REGISTERED_QUERY.credentials.map(({ id: _id, ...credential }) => credential);

/** A tenant of a service, and a registrar beside it. */
export class RegistrarWorld {
  readonly service: TestService;
  readonly registrar: TestRegistrar;
  readonly token: string;

  private constructor(service: TestService, registrar: TestRegistrar, token: string) {
    this.service = service;
    this.registrar = registrar;
    this.token = token;
  }

  static async open(environment: Readonly<Record<string, string>> = {}): Promise<RegistrarWorld> {
    const service = await startTestService(environment);
    const { token } = await createTenant(service, 'acme');
    return new RegistrarWorld(service, await TestRegistrar.start(), token);
  }

  /** Creates a tenant with a login at the registrar and a registered presentation configuration `check`. */
  static async openRegistered(): Promise<RegistrarWorld> {
    const registrarWorld = await RegistrarWorld.open();
    await registrarWorld.configure();
    await registrarWorld.call('POST', '/verifier/config', { id: 'check', dcql_query: REGISTERED_QUERY });
    return registrarWorld;
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.registrar.close();
  }

  call(method: string, path: string, json?: unknown, token = this.token): Promise<Answer> {
    return this.service.call(method, path, { token, ...(json === undefined ? {} : { json }) });
  }

  /** Saves the login at the registrar. */
  async configure(changes: object = {}, token = this.token): Promise<void> {
    const response = await this.call('POST', '/registrar/config', this.registrar.login({ ...changes }), token);
    expect(response.status, response.text).to.equal(201);
  }

  /** Creates a presentation configuration with a registration certificate. */
  configurePresentation(id: string, registrationCert: object | null, changes: object = {}, token = this.token): Promise<Answer> {
    const json = { id, dcql_query: REGISTERED_QUERY, registrationCert, ...changes };
    return this.call('POST', '/verifier/config', json, token);
  }

  requestPresentation(requestId: string, token = this.token): Promise<Answer> {
    return this.call('POST', '/verifier/offer', { response_type: 'uri', requestId }, token);
  }

  /** The request object that a wallet fetches. */
  // biome-ignore lint/suspicious/noExplicitAny: requests of every shape
  async request(requestId: string, token = this.token): Promise<{ header: any; payload: any }> {
    const offer = await this.requestPresentation(requestId, token);
    expect(offer.status, offer.text).to.equal(201);
    const { text } = await this.service.call('GET', new URL(offer.body.uri).searchParams.get('request_uri') ?? '');
    const [header, payload] = text
      .split('.')
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString()));
    return { header, payload };
  }

  /** Clears the caches, so that changes of the registrar take effect. */
  clearCaches(): void {
    const { registrar } = this;
    registrar.answers.clear();
    registrar.calls.length = 0;
    registrar.logins.length = 0;
    registrar.tokenLifetime = 600;
    registrar.header = {};
    registrar.payload = {};
    registrar.signedBy = registrar.signer;
  }
}

/** Expects the rejection of a property of the request. */
export function expectInvalid(answer: Answer, path: string, message = ''): void {
  expect([answer.status, answer.body?.code], answer.text).to.deep.equal([400, 'invalid_input']);
  expect(answer.body.errors[0].path, answer.text).to.equal(path);
  expect(answer.body.errors[0].message).to.include(message);
}

export function expectUnavailable(answer: Answer, message = ''): void {
  expect([answer.status, answer.body?.code], answer.text).to.deep.equal([503, 'unavailable']);
  expect(answer.body.detail).to.include(message);
}
