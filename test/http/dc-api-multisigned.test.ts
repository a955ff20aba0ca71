import { expect } from 'chai';
import { addClient } from '../support/populated.ts';
import { bind, decode, encrypt, type Held, QUERY, Shop, verifiedByLeaf } from '../support/present.ts';
import { withoutIssuers } from '../support/results.ts';

const SHOP = 'https://shop.example';
const FURTHER = ['bank', 'state'];

// biome-ignore lint/suspicious/noExplicitAny: members of requests
type Members = Record<string, any>;

describe('a request through the Digital Credentials API that several keys sign', () => {
  let shop: Shop;
  let held: Held;

  before(async () => {
    shop = await Shop.open();
    for (const id of FURTHER) {
      const body = { id, usageType: 'access', organization: `Shop of the ${id}`, country: 'DE' };
      const made = await shop.call('POST', '/key-chain', body);
      expect(made.status, made.text).to.equal(201);
    }
    await shop.configure({
      id: 'several',
      expectedOrigins: [SHOP],
      dcApiRequest: 'multisigned',
      furtherAccessKeyChainIds: FURTHER,
      attached: [{ format: 'jwt', data: 'about-the-shop' }],
    });
    held = await shop.issue();
  });
  after(() => shop.close());

  const offered = async (requestId = 'several') => {
    const made = await shop.call('POST', '/verifier/offer', { response_type: 'dc-api', requestId });
    expect(made.status, made.text).to.equal(201);
    return made.body as { session: string; uri: string; dcApi: { requests: Members[] } };
  };
  /** The compact form of each signature. */
  const compact = ({ payload, signatures }: Members): string[] =>
    signatures.map((one: Members) => `${one['protected']}.${payload}.${one['signature']}`);

  it('has one payload, and in the header of each signature who asks (OpenID4VP 1.0 appendix A.3.2)', async () => {
    const { dcApi, uri } = await offered();
    expect((await shop.service.call('GET', uri)).body).to.deep.equal(dcApi);
    const [{ protocol, data } = { protocol: '', data: {} }, ...others] = dcApi.requests as Members[];
    expect([protocol, others]).to.deep.equal(['openid4vp-v1-multisigned', []]);
    expect(data.request).to.have.all.keys('payload', 'signatures');
    const tokens = compact(data.request);
    expect(tokens).to.have.length(3);
    const clientIds = tokens.map((token) => {
      const leaf = verifiedByLeaf(token);
      const { header, payload } = decode(token);
      expect(payload).to.have.all.keys(
        ...['response_type', 'response_mode', 'nonce', 'dcql_query', 'client_metadata'],
        ...['expected_origins', 'aud', 'iat', 'exp'],
      );
      expect(header).to.have.all.keys('alg', 'typ', 'x5c', 'kid', 'client_id', 'verifier_info');
      expect(header['typ']).to.equal('oauth-authz-req+jwt');
      expect(header['verifier_info']).to.deep.equal([{ format: 'jwt', data: 'about-the-shop' }]);
      const hash = Buffer.from(leaf.fingerprint256.replaceAll(':', ''), 'hex').toString('base64url');
      expect(header['client_id']).to.equal(`x509_hash:${hash}`);
      return header['client_id'];
    });
    expect(new Set(clientIds)).to.have.length(3);
  });

  it('is answered like any other', async () => {
    const { dcApi, uri, session } = await offered();
    const [token = ''] = compact(dcApi.requests[0]?.['data'].request);
    const { payload } = decode(token);
    const vp_token = { card: [bind({ payload }, held, ['name'], { aud: `origin:${SHOP}` })] };
    const json = { response: await encrypt({ payload }, { vp_token }) };
    const answer = await shop.service.call('POST', uri, { json });
    expect(answer.status, answer.text).to.equal(200);
    const { status, credentials } = await shop.session(session);
    expect(status).to.equal('completed');
    expect(withoutIssuers(credentials)).to.deep.equal([{ id: 'card', values: { name: 'Ada' } }]);
  });

  it('keeps the key chains that it names from being deleted', async () => {
    const answer = await shop.call('DELETE', '/key-chain/bank');
    expect(answer.status).to.equal(409);
    expect(answer.text).to.match(/presentation configuration several/);
  });

  it('is served no more once one of its keys was taken away', async () => {
    await shop.call('POST', '/key-chain', { id: 'passing', usageType: 'access' });
    const configured = { expectedOrigins: [SHOP], dcApiRequest: 'multisigned' };
    await shop.configure({ id: 'passing', ...configured, furtherAccessKeyChainIds: ['passing'] });
    const { uri } = await offered('passing');
    expect((await shop.service.call('GET', uri)).status).to.equal(200);
    const changed = { furtherAccessKeyChainIds: ['bank'] };
    expect((await shop.call('PATCH', '/verifier/config/passing', changed)).status).to.equal(200);
    const removed = await shop.call('DELETE', '/key-chain/passing');
    expect(removed.status, removed.text).to.be.oneOf([200, 204]);
    expect((await shop.service.call('GET', uri)).status).to.equal(410);
  });

  describe('cannot be configured', () => {
    const refusal = async (more: object) => {
      const body = { id: 'wrong', expectedOrigins: [SHOP], dcql_query: QUERY, ...more };
      const answer = await shop.call('POST', '/verifier/config', body);
      expect(answer.status, answer.text).to.equal(400);
      return answer.text;
    };
    const several = { dcApiRequest: 'multisigned' };
    for (const [what, more, reason] of [
      ['without further keys', several, /name the key chains/],
      [
        'with one of them twice',
        { ...several, furtherAccessKeyChainIds: ['bank', 'bank'] },
        /each of them once/,
      ],
      [
        'with keys that would not sign',
        { furtherAccessKeyChainIds: ['bank'] },
        /only with dcApiRequest multisigned/,
      ],
      [
        'with the key that signs anyway',
        { ...several, furtherAccessKeyChainIds: ['access'] },
        /furtherAccessKeyChainIds.0.*signs already/,
      ],
      [
        'with a key chain that is not there',
        { ...several, furtherAccessKeyChainIds: ['nobody'] },
        /furtherAccessKeyChainIds.0/,
      ],
      [
        'with one for another usage',
        { ...several, furtherAccessKeyChainIds: ['signing'] },
        /furtherAccessKeyChainIds.0/,
      ],
    ] as const) {
      it(what, async () => expect(await refusal(more)).to.match(reason));
    }
  });

  it('is made in the name of no configuration that a client may not use', async () => {
    await shop.configure({ id: 'foreign', accessKeyChainId: 'state', expectedOrigins: [SHOP] });
    const wanted = { roles: ['presentation:manage'], allowedPresentationConfigs: ['mine'] };
    const token = await addClient({ service: shop.service, token: shop.token }, 'limited', wanted);
    const body = { id: 'mine', dcql_query: QUERY, dcApiRequest: 'multisigned' };
    const named = (id: string) => ({ ...body, furtherAccessKeyChainIds: [id] });
    const foreign = await shop.call('POST', '/verifier/config', named('state'), token);
    expect(foreign.status, foreign.text).to.equal(403);
    await shop.call('POST', '/key-chain', { id: 'own', usageType: 'access' });
    const own = await shop.call('POST', '/verifier/config', named('own'), token);
    expect(own.status, own.text).to.equal(201);
  });
});
