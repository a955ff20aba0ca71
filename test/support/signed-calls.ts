import { expect } from 'chai';
import { Webhook } from 'standardwebhooks';
import { Log } from '../../application/ports/log.ts';
import { verifyWebhook } from '../../docs/examples/verify-webhook.mjs';
import type { BackendCall } from './backend.ts';
import { Issuer } from './interactive-authorization.ts';
import { type HeldCredential, present, requestPresentation } from './present.ts';
import { RawWallet } from './raw-wallet.ts';
import { type Answer, createTenant, type TestService } from './test-service.ts';

type Tenant = { readonly service: TestService; readonly token: string };

/** Rotates the secret that signs calls to a tenant's backends. */
export async function rotateWebhookSecret({ service, token }: Tenant, json: object = {}): Promise<string> {
  const answer = await service.call('POST', '/webhook-secret/rotate', { token, json });
  expect(answer.status, answer.text).to.equal(201);
  expect(answer.body.secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
  return answer.body.secret;
}

export async function switchSigning({ service, token }: Tenant, signing: 'v1' | 'off'): Promise<Answer> {
  const answer = await service.call('PATCH', '/webhook-secret', { token, json: { signing } });
  expect(answer.status, answer.text).to.equal(200);
  return answer;
}

/** Number of signatures of a call. */
export const signaturesOf = ({ headers }: BackendCall): number =>
  String(headers['webhook-signature'] ?? '')
    .split(' ')
    .filter((signature) => signature.startsWith('v1,')).length;

/** Whether a backend with this secret accepts the call: by the reference library and by the example code. */
export function isSignedWith(secret: string, { headers, text }: Pick<BackendCall, 'headers' | 'text'>): boolean {
  const accepted = [
    () => new Webhook(secret).verify(text, headers as Record<string, string>),
    () => verifyWebhook(headers, text, secret),
  ].map((verify) => {
    try {
      verify();
      return true;
    } catch {
      return false;
    }
  });
  expect(accepted[0], 'both agree').to.equal(accepted[1]);
  return accepted[0] === true;
}

/** Copies of the call with one change each. */
export function tamperedCalls({ headers, text }: BackendCall): readonly Pick<BackendCall, 'headers' | 'text'>[] {
  const timestamp = Number(headers['webhook-timestamp']);
  return [
    { headers, text: `${text} ` },
    { headers, text: text.replace('"', "'") },
    { headers: { ...headers, 'webhook-id': `${headers['webhook-id']}x` }, text },
    { headers: { ...headers, 'webhook-timestamp': String(timestamp - 1) }, text },
    { headers: { ...headers, 'webhook-signature': 'v1,' }, text },
  ];
}

const printable = (value: unknown) => (value instanceof Error ? `${value.stack} ${value.cause}` : value);

/** An issuer whose service makes calls of every kind, with all returned secrets and log lines. */
export class SignedWorld {
  readonly issuer: Issuer;
  readonly credential: HeldCredential;
  /** Every returned secret. */
  readonly secrets: string[] = [];
  /** All log lines of every level. */
  readonly logs: unknown[] = [];

  private constructor(issuer: Issuer, held: HeldCredential) {
    this.issuer = issuer;
    this.credential = held;
    const log = issuer.service.service.container.get(Log) as unknown as Record<string, unknown>;
    for (const level of ['debug', 'info', 'warn', 'error']) {
      log[level] = (...values: unknown[]) => this.logs.push(values.map(printable));
    }
  }

  static async open(environment: Readonly<Record<string, string>>): Promise<SignedWorld> {
    const issuer = await Issuer.open(environment);
    issuer.reference = SignedWorld.REFERENCE;
    const url = (path: string) => `${issuer.backend.url}/${path}`;
    await issuer.addPresentationConfig('told', { webhook: { url: url('presented') } });
    await issuer.addBadge('friend', [{ type: 'openid4vp_presentation', presentationConfigId: 'told' }]);
    const page = { type: 'redirect_to_web', url: url('page?visit={auth_session}') };
    await issuer.addBadge('guest', [{ ...page, callbackUrl: url('confirm') }]);
    return new SignedWorld(issuer, await issuer.issueCredential());
  }

  /** Clears the calls; all webhooks accept again. */
  reset(): void {
    this.issuer.backend.clearCalls();
    this.issuer.backend.on('/presented', { json: {} });
  }

  async rotate(json: object = {}, token = this.issuer.token): Promise<string> {
    const secret = await rotateWebhookSecret({ service: this.issuer.service, token }, json);
    this.secrets.push(secret);
    return secret;
  }

  /** The secret of another tenant of the same service. */
  async otherTenantSecret(): Promise<string> {
    return this.rotate({}, (await createTenant(this.issuer.service, 'other')).token);
  }

  async #issue(id: string, extra: object = {}) {
    const { service, token, id: tenant } = this.issuer;
    const offer = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: [id], reference: SignedWorld.REFERENCE };
    const offerResponse = await service.call('POST', '/issuer/offer', { token, json: { ...offer, ...extra } });
    expect(offerResponse.status, offerResponse.text).to.equal(201);
    const wallet = new RawWallet(service, tenant);
    const accessToken = await wallet.accessToken(offerResponse.body.uri);
    return { wallet, accessToken, issued: await wallet.request(accessToken, id) };
  }

  /** Calls a claims webhook with this response. @returns the call. */
  async #askClaims(status: number, answer: Parameters<Issuer['backend']['on']>[1], extra: object = {}): Promise<BackendCall> {
    this.reset();
    const { backend } = this.issuer;
    backend.on('/of-offer', answer);
    const card = { type: 'webhook', webhook: { url: `${backend.url}/of-offer` } };
    const { issued } = await this.#issue('card', { credentialClaims: { card }, ...extra });
    expect(issued.status, issued.text).to.equal(status);
    return this.onlyCall('/of-offer');
  }

  onlyCall(path: string): BackendCall {
    const calls = this.issuer.backend.callsTo(path);
    expect(calls, path).to.have.length(1);
    return calls[0] as BackendCall;
  }

  /** @param extra properties of the offer. */
  claimsCall(extra: object = {}): Promise<BackendCall> {
    return this.#askClaims(200, { json: { card: { name: 'Ada' } } }, extra);
  }

  /** The credential bound to another key. */
  async #stolen(): Promise<HeldCredential> {
    return { ...this.credential, holder: (await this.issuer.issueCredential()).holder };
  }

  async presentationCall(held: HeldCredential, status: number, requestId = 'told'): Promise<BackendCall> {
    const { service, token } = this.issuer;
    const request = await requestPresentation(service, token, requestId, { reference: SignedWorld.REFERENCE });
    expect((await present(service, request, held)).status).to.equal(status);
    return this.onlyCall('/presented');
  }

  async #presentationBeforeIssuance(held: HeldCredential): Promise<BackendCall> {
    const wallet = this.issuer.wallet();
    const { uri } = await this.issuer.offer('friend');
    const request = wallet.expectPresentationStep(await wallet.begin(uri, { scope: 'friend' }));
    const answer = await wallet.present(request, held);
    if (held === this.credential) wallet.expectCode(answer);
    else expect(answer.body.error).to.equal('access_denied');
    return this.onlyCall('/presented');
  }

  async #notification(): Promise<BackendCall> {
    const { service, backend, id } = this.issuer;
    const notifyWebhook = { url: `${backend.url}/notified` };
    const { wallet, accessToken, issued } = await this.#issue('card', { notifyWebhook });
    const answer = await service.call('POST', `/${id}/notification`, {
      headers: wallet.authorization(accessToken, { path: 'notification' }),
      json: { notification_id: issued.body.notification_id, event: 'credential_accepted' },
    });
    expect(answer.status, answer.text).to.equal(204);
    return this.onlyCall('/notified');
  }

  async #webStep(): Promise<BackendCall> {
    const wallet = this.issuer.wallet();
    const { uri } = await this.issuer.offer('guest');
    const request = wallet.expectWebStep(await wallet.begin(uri, { scope: 'guest' }));
    const { back } = await wallet.visit(request);
    wallet.codeFrom(back);
    return this.onlyCall('/confirm');
  }

  /** `reference` of every offer and request. */
  static readonly REFERENCE = 'order 17';

  /** Triggers for each kind of call. */
  static readonly CALLS: Readonly<Record<string, (world: SignedWorld) => Promise<BackendCall>>> = {
    'the claims webhook': (world) => world.claimsCall(),
    'the claims webhook that defers': (world) => world.#askClaims(202, { json: { deferred: true, interval: 5 } }),
    'the claims webhook that fails': (world) => world.#askClaims(400, (response) => response.writeHead(503).end()),
    'the notification webhook': (world) => world.#notification(),
    'the presentation webhook': (world) => world.presentationCall(world.credential, 200),
    'the presentation webhook of a rejected response': async (world) => world.presentationCall(await world.#stolen(), 400),
    'the presentation webhook before an issuance': (world) => world.#presentationBeforeIssuance(world.credential),
    'the presentation webhook of a rejected response before an issuance': async (world) =>
      world.#presentationBeforeIssuance(await world.#stolen()),
    'the question whether a web step is done': (world) => world.#webStep(),
  };
}
