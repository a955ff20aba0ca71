import { expect } from 'chai';
import { type Held, QUERY, Shop } from '../support/present.ts';
import { certify, pem } from '../support/test-certificates.ts';

describe('trust lists of this service as anchors', () => {
  let shop: Shop;
  let held: Held;
  let list: string;

  before(async () => {
    shop = await Shop.open();
    list = `${shop.service.address}/acme/trust-list/issuers`;
    await publish('POST', '/trust-list', { id: 'issuers', entities: [self()] });
    await shop.configure({ id: 'listed', trustAnchors: [{ trustList: list }] });
    held = await shop.issue('card-status');
  });
  after(() => shop.close());

  const self = () => ({
    type: 'internal',
    issuerKeyChainId: 'signing',
    info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' },
  });
  async function publish(method: string, path: string, json: object) {
    const answer = await shop.call(method, path, json, shop.acme.token);
    expect(answer.status, answer.text).to.equal(method === 'POST' ? 201 : 200);
  }
  const attempt = async (requestId = 'listed', credential = held) => {
    const asked = await shop.ask(requestId);
    const { status } = await shop.present(asked, credential);
    const { report } = await shop.session(asked.session);
    return { status, report: JSON.stringify(report) };
  };
  const clear = async (path: string) => expect((await shop.call('DELETE', path)).status, path).to.equal(204);
  const stats = async () => (await shop.call('GET', '/cache/stats')).body;

  it('vouch for issuers without a certificate in the configuration, and the report names them', async () => {
    const { status, report } = await attempt();
    expect(status, report).to.equal(200);
    expect(report).to.include(`Acme on ${list} number 1`);
  });

  it('are kept for a while, counted, and dropped on demand', async () => {
    await clear('/cache');
    const before = (await stats()).trustListCache;
    await attempt();
    await attempt();
    const { trustListCache: after, statusListCache } = await stats();
    expect([after.size, after.misses - before.misses, after.hits - before.hits]).to.deep.equal([1, 1, 1]);
    expect(after.entries[0].uri).to.equal(list);
    expect(Date.parse(after.entries[0].expiresAt)).to.be.greaterThan(Date.parse(after.entries[0].fetchedAt));
    expect(statusListCache).to.deep.include({ size: 0, entries: [] });
    await clear('/cache/status-list');
    expect((await stats()).trustListCache.size).to.equal(1);
    await clear('/cache/trust-list');
    expect((await stats()).trustListCache).to.deep.include({ size: 0, entries: [] });
    const foreign = await shop.call('GET', '/cache/stats', undefined, shop.acme.token);
    expect(foreign.body.trustListCache.size, 'of the other tenant').to.equal(0);
  });

  it('are asked for by a query', async () => {
    const [query] = QUERY.credentials;
    const demand = (values: string[]) => ({
      id: 'demanding',
      dcql_query: { credentials: [{ ...query, trusted_authorities: [{ type: 'etsi_tl', values }] }] },
      trustAnchors: [{ trustList: list }],
    });
    await shop.configure(demand([list]));
    expect((await attempt('demanding')).status).to.equal(200);
    const other = await shop.call('POST', '/verifier/config', demand(['https://other.example/lote']));
    expect([other.status, other.body.errors[0].path]).to.deep.equal([
      400,
      'dcql_query.credentials.0.trusted_authorities.0.values.0',
    ]);
    const federation = demand([list]);
    const [credential] = federation.dcql_query.credentials;
    const unsupported = {
      ...federation,
      dcql_query: {
        credentials: [{ ...credential, trusted_authorities: [{ type: 'openid_federation', values: ['x'] }] }],
      },
    };
    expect((await shop.call('POST', '/verifier/config', unsupported)).status).to.equal(400);
  });

  it('are read with the configured signer when there is one', async () => {
    const stranger = pem(await certify({ name: 'Stranger' }));
    await shop.configure({ id: 'pinned', trustAnchors: [{ trustList: list, signedBy: [stranger] }] });
    const { status, report } = await attempt('pinned');
    expect([status, report]).to.satisfy(
      ([code, text]: [number, string]) => code === 400 && /untrusted_signer/.test(text),
    );
  });

  it('vouch for nobody when there is no such list', async () => {
    for (const uri of [`${list}-gone`, list.replace('/acme/', '/nobody/')]) {
      await shop.configure({ id: 'gone', trustAnchors: [{ trustList: uri }] });
      const { status, report } = await attempt('gone');
      expect(status).to.equal(400);
      expect(report).to.match(/unavailable: this service publishes no such list/);
    }
  });

  it('are not taken from elsewhere without somebody who signs', async () => {
    for (const trustList of [
      'https://elsewhere.example/lote',
      `${shop.service.address}/acme/other/issuers`,
    ]) {
      const json = { id: 'bad', dcql_query: QUERY, trustAnchors: [{ trustList }] };
      const answer = await shop.call('POST', '/verifier/config', json);
      expect([answer.status, answer.body.errors[0].path]).to.deep.equal([400, 'trustAnchors.0.signedBy']);
    }
  });

  it('say whose status lists count, also when those are of this service', async () => {
    const replace = async (revocationKeyChainId?: string) => {
      await publish('PUT', '/trust-list/issuers', { entities: [{ ...self(), revocationKeyChainId }] });
      await clear('/cache/trust-list');
      return attempt();
    };
    expect((await replace('status-list')).status).to.equal(200);
    await publish('POST', '/key-chain', { id: 'z-status', usageType: 'statusList' });
    const { status, report } = await replace('z-status');
    expect(status).to.equal(400);
    expect(report).to.match(/status_invalid: signer/);
    expect((await replace()).status).to.equal(200);
  });

  it('stop vouching for an issuer that is taken out', async () => {
    expect((await attempt()).status).to.equal(200);
    const university = pem(await certify({ name: 'University', ca: true }));
    const others = [
      {
        type: 'external',
        issuerCertPem: university,
        info: { name: 'University', country: 'FR', streetAddress: 'Rue 1' },
      },
    ];
    await publish('PUT', '/trust-list/issuers', { entities: others });
    await clear('/cache/trust-list');
    const { status, report } = await attempt();
    expect(status).to.equal(400);
    expect(report).to.match(/untrusted_chain/);
    await publish('PUT', '/trust-list/issuers', { entities: [self()] });
    await clear('/cache/trust-list');
    expect((await attempt()).status).to.equal(200);
  });
});
