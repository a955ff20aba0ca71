import { expect } from 'chai';
import { createTenant, startTestService, type TestService } from '../support/test-service.ts';

const display = [{ name: 'Acme', locale: 'en' }];
const QUERY = { credentials: [{ id: 'pid', format: 'dc+sd-jwt', meta: { vct_values: ['urn:pid:1'] } }] };

describe('Requests that release 0.1.0 accepted', () => {
  let service: TestService;
  let token: string;

  before(async () => {
    service = await startTestService({ OUTBOUND_ALLOW: 'my_backend' });
    ({ token } = await createTenant(service, 'acme'));
  });
  after(() => service.close());

  const written = async (method: string, path: string, json: object) => {
    const answer = await service.call(method, path, { token, json });
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body;
  };
  const credential = (changes: object) => ({
    id: 'pid',
    config: { format: 'dc+sd-jwt', display },
    vct: 'urn:pid:1',
    ...changes,
  });
  /** Writes the resource with an address, by POST and by PATCH, and returns what is stored each time. */
  const addresses: Record<string, (uri: string) => Promise<string[]>> = {
    webhook: async (url) => {
      const made = await written('POST', '/issuer/credentials', credential({ claimsWebhook: { url } }));
      const changed = await written('PATCH', '/issuer/credentials/pid', { notificationWebhook: { url } });
      await service.call('DELETE', '/issuer/credentials/pid', { token });
      return [made.claimsWebhook.url, changed.notificationWebhook.url];
    },
    redirectUri: async (redirectUri) => {
      const made = await written('POST', '/verifier/config', { id: 'q', dcql_query: QUERY, redirectUri });
      const changed = await written('PATCH', '/verifier/config/q', { redirectUri });
      return [made.redirectUri, changed.redirectUri];
    },
    logo: async (uri) => {
      const logo = { uri };
      const config = { format: 'dc+sd-jwt', display: [{ name: 'Acme', locale: 'en', logo }] };
      const made = await written('POST', '/issuer/config', { display: [{ name: 'Acme', logo }] });
      const card = await written('POST', '/issuer/credentials', credential({ config }));
      await service.call('DELETE', '/issuer/credentials/pid', { token });
      return [made.display[0].logo.uri, card.config.display[0].logo.uri];
    },
    authServers: async (uri) => {
      const made = await written('POST', '/issuer/config', {
        display,
        authServers: [uri],
        preferredAuthServer: uri,
      });
      const { body } = await service.call('GET', '/.well-known/openid-credential-issuer/acme');
      return [...made.authServers, made.preferredAuthServer, body.authorization_servers[0]];
    },
    'chainedAs.upstream': async (issuer) => {
      const upstream = { issuer, clientId: 'acme', clientSecret: 'a secret of this client' };
      const made = await written('POST', '/issuer/config', { display, chainedAs: { upstream } });
      return [made.chainedAs.upstream.issuer];
    },
    'info.uri': async (uri) => {
      const info = { name: 'Acme', country: 'DE', streetAddress: 'Weg 1', uri, contactUri: uri };
      const entities = [{ type: 'internal', issuerKeyChainId: 'signing', info }];
      const made = await written('POST', '/trust-list', { id: `l${lists++}`, entities });
      return [made.entityConfig[0].info.uri, made.entityConfig[0].info.contactUri];
    },
  };
  let lists = 0;
  const CASES: [string, string][] = [
    ['https://acme.example/p/{y}', 'https://acme.example/p/%7By%7D'],
    ['https://münchen.example/x', 'https://xn--mnchen-3ya.example/x'],
    ['https://acme.example/a|b', 'https://acme.example/a%7Cb'],
    ['http://my_backend:8080/x', 'http://my_backend:8080/x'],
    [' https://acme.example/x\n', 'https://acme.example/x'],
  ];
  const WITH_QUERY: [string, string][] = [
    ['https://acme.example/?filter[x]=1', 'https://acme.example/?filter%5Bx%5D=1'],
    ['https://acme.example/?x=%zz', 'https://acme.example/?x=%25zz'],
  ];
  for (const [kind, write] of Object.entries(addresses)) {
    const isIssuer = kind === 'authServers' || kind === 'chainedAs.upstream';
    for (const [text, normal] of isIssuer ? CASES : [...CASES, ...WITH_QUERY]) {
      it(`store ${JSON.stringify(text)} as ${kind} in the form ${normal}`, async () => {
        for (const stored of await write(text)) expect(stored).to.equal(normal);
      });
    }
    it(`are still rejected with a password in ${kind}`, async () => {
      const error: unknown = await write('https://u:p@acme.example/x').catch((reason: unknown) => reason);
      expect(String(error)).to.include('400').and.include('credentials');
    });
  }

  it('store a vct with characters of no URI as it is, and warn about it', async () => {
    const made = await written('POST', '/issuer/credentials', credential({ vct: 'Student card' }));
    expect(made.vct).to.equal('Student card');
    expect(made.warnings.map(({ member }: { member: string }) => member)).to.include('vct');
    await service.call('DELETE', '/issuer/credentials/pid', { token });
  });

  it('store a presentation configuration that trusts no issuer, and warn about it', async () => {
    const made = await written('POST', '/verifier/config', {
      id: 'none',
      dcql_query: QUERY,
      trustAnchors: [],
    });
    expect(made.trustAnchors).to.deep.equal([]);
    expect(made.warnings.map(({ member }: { member: string }) => member)).to.include('trustAnchors');
  });
});
