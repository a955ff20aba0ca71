import { expect } from 'chai';
import { Backend } from './backend.ts';
import { CURRENT, InteractiveWallet, type Wire } from './interactive-wallet.ts';
import { type Held, issue, QUERY } from './present.ts';
import { createTenant, startTestService, type TestService } from './test-service.ts';

const display = [{ name: 'Card', locale: 'en' }];
const CLAIMS = { claims: { name: 'Ada', age: 36 }, disclosureFrame: { _sd: ['name', 'age'] } };

/** An issuer that gives a badge to holders of its card, or to visitors of a page. */
export class Issuer {
  readonly service: TestService;
  readonly backend: Backend;
  readonly token: string;
  readonly id: string;

  private constructor(service: TestService, backend: Backend, id: string, token: string) {
    this.service = service;
    this.backend = backend;
    this.id = id;
    this.token = token;
  }

  static async open(environment: Record<string, string> = {}): Promise<Issuer> {
    const service = await startTestService(environment);
    const { id, token } = await createTenant(service, 'acme');
    const issuer = new Issuer(service, await Backend.start(), id, token);
    const page = `${issuer.backend.url}/page?visit={auth_session}`;
    await issuer.write('/issuer/config', { display });
    for (const more of [{ id: 'card' }, { id: 'card-status', statusManagement: true }]) {
      await issuer.write('/issuer/credentials', {
        ...CLAIMS,
        ...more,
        config: { format: 'dc+sd-jwt', display },
        vct: 'urn:card:1',
      });
    }
    await issuer.check('check');
    await issuer.check('encrypted', { responseMode: 'direct_post.jwt' });
    await issuer.badge('badge', [{ type: 'openid4vp_presentation', presentationConfigId: 'check' }]);
    await issuer.badge('sealed', [{ type: 'openid4vp_presentation', presentationConfigId: 'encrypted' }]);
    await issuer.badge('visitor', [{ type: 'redirect_to_web', url: page }]);
    await issuer.badge('both', [
      { type: 'openid4vp_presentation', presentationConfigId: 'check', label: 'Show your card' },
      { type: 'redirect_to_web', url: page },
    ]);
    await issuer.badge('tour', [
      { type: 'redirect_to_web', url: page },
      { type: 'redirect_to_web', url: `${page}&second=1` },
    ]);
    await issuer.badge('plain', []);
    return issuer;
  }

  async close(): Promise<void> {
    await this.service.close();
    await this.backend.close();
  }

  async write(path: string, json: object): Promise<void> {
    const written = await this.service.call('POST', path, { token: this.token, json });
    expect(written.status, written.text).to.equal(201);
  }

  /** A presentation configuration that trusts the cards of this issuer, unless it says otherwise. */
  check(id: string, more: object = {}): Promise<void> {
    const trusted = { dcql_query: QUERY, trustAnchors: [{ keyChainId: 'signing' }], values: 'requested' };
    return this.write('/verifier/config', { id, responseMode: 'direct_post', ...trusted, ...more });
  }

  /** A credential whose claims come from the backend. */
  badge(id: string, iaeActions: readonly object[]): Promise<void> {
    this.backend.on('/claims', (response, call) => {
      const [presented] = call.body.credentials;
      const claims = { role: presented === undefined ? 'visitor' : `friend of ${presented.values.name}` };
      response.end(JSON.stringify({ [call.body.credential_configuration_id]: claims }));
    });
    return this.write('/issuer/credentials', {
      id,
      config: { format: 'dc+sd-jwt', display },
      vct: `urn:${id}:1`,
      disclosureFrame: { _sd: ['role'] },
      claimsWebhook: { url: `${this.backend.url}/claims` },
      iaeActions,
    });
  }

  /** `reference` of further offers. */
  reference: string | undefined;

  async offer(...credentialConfigurationIds: string[]): Promise<{ uri: string; session: string }> {
    const json = {
      response_type: 'uri',
      flow: 'authorization_code',
      credentialConfigurationIds,
      ...(this.reference !== undefined && { reference: this.reference }),
    };
    const made = await this.service.call('POST', '/issuer/offer', { token: this.token, json });
    expect(made.status, made.text).to.equal(201);
    return made.body;
  }

  hold(configurationId = 'card'): Promise<Held> {
    return issue(this.service, this, configurationId);
  }

  wallet(wire: Wire = CURRENT): InteractiveWallet {
    return new InteractiveWallet(this.service, this.id, wire);
  }

  // biome-ignore lint/suspicious/noExplicitAny: sessions as they are shown
  async session(id: string): Promise<any> {
    return (await this.service.call('GET', `/session/${id}`, { token: this.token })).body;
  }
}
