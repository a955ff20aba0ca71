import { verify, X509Certificate } from 'node:crypto';
import { inflateSync } from 'node:zlib';
import { expect } from 'chai';
import sinon from 'sinon';
import { parseStatusListCwt } from '../../domain/status-lists/token-cwt.ts';
import { decode, type HeldCredential, issue, verifyWithLeaf } from '../support/present.ts';
import { keyProof, newKey, RawWallet } from '../support/raw-wallet.ts';
import { type Answer, createTenant, startTestService, type TestService } from '../support/test-service.ts';

const CARD = {
  id: 'card',
  config: { format: 'dc+sd-jwt', display: [{ name: 'Card', locale: 'en' }] },
  vct: 'urn:card:1',
  claims: { name: 'Ada' },
  statusManagement: true,
};
const MEDIA_TYPE = 'application/statuslist+jwt';
const CWT = 'application/statuslist+cwt';

type Tenant = { readonly id: string; readonly token: string };

describe('Status lists through HTTP', () => {
  let service: TestService;

  before(async () => {
    service = await startTestService();
  });
  after(() => service.close());

  /** A tenant that issues revocable cards, with this shape of its lists. */
  const issuer = async (id: string, statusListConfig: object = {}, batchSize = 1): Promise<Tenant> => {
    const tenant = await createTenant(service, id, { statusListConfig });
    const call = (path: string, json: object) => service.call('POST', path, { token: tenant.token, json });
    expect((await call('/issuer/credentials', CARD)).status).to.equal(201);
    const config = { display: [{ name: id, locale: 'en' }], batchSize };
    expect((await call('/issuer/config', config)).status).to.equal(201);
    return tenant;
  };
  const referenceIn = (text: string): { idx: number; uri: string } => decode(text).payload['status'].status_list;
  const fetchList = (uri: string, headers: Record<string, string> = {}) => service.call('GET', uri, { headers });
  const revoke = (tenant: Tenant, json: object): Promise<Answer> => service.call('POST', '/session/revoke', { token: tenant.token, json });
  const entriesOf = ({ text }: Answer) => {
    const { bits, lst } = decode(text).payload['status_list'];
    const bytes = inflateSync(Buffer.from(lst, 'base64url'));
    const perByte = 8 / bits;
    return {
      bits,
      size: bytes.length * perByte,
      at: (i: number) => ((bytes[Math.floor(i / perByte)] ?? 0) >> ((i % perByte) * bits)) & (2 ** bits - 1),
      set: bytes.filter((byte) => byte !== 0).length,
    };
  };

  describe('a token', () => {
    let tenant: Tenant;
    let held: HeldCredential;
    let uri: string;

    before(async () => {
      tenant = await issuer('plain');
      held = await issue(service, tenant, 'card');
      ({ uri } = referenceIn(held.text));
    });

    it('is signed without its anchor, for the address in the credential', async () => {
      const answer = await fetchList(uri);
      expect([answer.status, answer.headers.get('content-type')]).to.deep.equal([200, MEDIA_TYPE]);
      const { header, payload } = decode(answer.text);
      expect(header).to.include({ typ: 'statuslist+jwt', alg: 'ES256' });
      expect(header['x5c']).to.have.length(1);
      const leaf = verifyWithLeaf(answer.text);
      expect(leaf.issuer).to.not.equal(leaf.subject);
      const { x, y } = leaf.publicKey.export({ format: 'jwk' });
      expect(header['jwk']).to.include({ kty: 'EC', crv: 'P-256', x, y }).and.not.have.property('d');
      expect(payload).to.have.all.keys('sub', 'iat', 'exp', 'ttl', 'status_list');
      expect(payload['sub']).to.equal(uri);
      expect(uri).to.match(new RegExp(`^${service.address}/plain/status-list/[\\w-]{22,}$`));
      expect([payload['ttl'], payload['exp'] - payload['iat']]).to.deep.equal([3600, 3600]);
      expect(payload['status_list'].aggregation_uri).to.equal(`${service.address}/plain/status-lists`);
    });

    it('has 100,000 entries, all valid, and allocates entries in random order', async () => {
      const list = entriesOf(await fetchList(uri));
      expect([list.bits, list.size, list.set]).to.deep.equal([1, 100_000, 0]);
      const places: number[] = [];
      for (let i = 0; i < 8; i++) places.push(referenceIn((await issue(service, tenant, 'card')).text).idx);
      expect(new Set(places).size).to.equal(8);
      for (const place of places) expect(place).to.be.within(0, 99_999);
      const steps = places.slice(1).map((place, i) => place - (places[i] ?? 0));
      expect(new Set(steps).size, 'no sequence').to.be.greaterThan(1);
    });

    it('may be cached for its lifetime and is confirmed by its ETag', async () => {
      const answer = await fetchList(uri);
      const [, maxAge] = /^public, max-age=(\d+)$/.exec(answer.headers.get('cache-control') ?? '') ?? [];
      const left = decode(answer.text).payload['exp'] - Date.now() / 1000;
      expect(Number(maxAge)).to.be.within(Math.floor(left) - 2, Math.ceil(left) + 1);
      expect(answer.headers.get('access-control-allow-origin')).to.equal('*');
      const etag = answer.headers.get('etag') ?? '';
      expect(etag).to.match(/^"[^"]+"$/);
      for (const given of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const again = await fetchList(uri, { 'If-None-Match': given });
        expect([again.status, again.text, again.headers.get('etag')], given).to.deep.equal([304, '', etag]);
        expect(again.headers.get('cache-control')).to.match(/max-age/);
      }
      expect((await fetchList(uri, { 'If-None-Match': '"other"' })).status).to.equal(200);
      expect((await fetchList(uri)).text, 'one token for all').to.equal(answer.text);
    });

    it('is served for clients that accept it, and for no others', async () => {
      for (const accept of ['*/*', MEDIA_TYPE, 'application/*', `text/html, ${MEDIA_TYPE};q=0.5`]) {
        expect((await fetchList(uri, { Accept: accept })).status, accept).to.equal(200);
      }
      for (const accept of [`${CWT};q=0`, 'text/html', `${MEDIA_TYPE};q=0`]) {
        expect((await fetchList(uri, { Accept: accept })).status, accept).to.equal(406);
      }
    });

    it('is served as a CWT for clients that accept no JWT, with the same content and a key of its own chain', async () => {
      const jwt = decode((await fetchList(uri)).text).payload;
      const response = await fetch(uri, { headers: { Accept: CWT } });
      expect([response.status, response.headers.get('content-type')]).to.deep.equal([200, CWT]);
      expect(response.headers.get('vary')).to.equal('Accept, Accept-Encoding');
      const bytes = Buffer.from(await response.arrayBuffer());
      const { algorithm, chain, payload, toVerify, signature } = parseStatusListCwt(bytes);
      const { aggregation_uri: _, ...list } = jwt['status_list'];
      expect(payload).to.deep.equal({ ...{ sub: jwt['sub'], iat: jwt['iat'], exp: jwt['exp'], ttl: jwt['ttl'] }, status_list: list });
      expect(algorithm).to.equal('ES256');
      expect(chain).to.deep.equal(decode((await fetchList(uri)).text).header['x5c']);
      const leaf = new X509Certificate(Buffer.from(chain?.[0] ?? '', 'base64'));
      const key = { key: leaf.publicKey, dsaEncoding: 'ieee-p1363' } as const;
      expect(verify('sha256', toVerify, key, signature)).to.equal(true);
      const again = await fetch(uri, { headers: { Accept: CWT, 'If-None-Match': response.headers.get('etag') ?? '' } });
      expect(again.status).to.equal(304);
      expect((await fetchList('/plain/status-list/unknown', { Accept: CWT })).status).to.equal(404);
    });

    it('is returned in the format with the greater weight', async () => {
      const typeFor = async (accept: string) => (await fetchList(uri, { Accept: accept })).headers.get('content-type');
      expect(await typeFor(`${CWT}, ${MEDIA_TYPE};q=0.1`)).to.equal(CWT);
      expect(await typeFor(`${CWT};q=0.1, ${MEDIA_TYPE};q=0.2`)).to.equal(MEDIA_TYPE);
      expect(await typeFor(`*/*;q=0.5, ${CWT};q=0.4`)).to.equal(MEDIA_TYPE);
      expect(await typeFor(`${MEDIA_TYPE};q=0, */*`)).to.equal(CWT);
    });

    it('has no history and is served at no other address', async () => {
      expect((await fetchList(`${uri}?time=1700000000`)).status).to.equal(501);
      const id = uri.split('/').at(-1);
      await issuer('neighbour');
      for (const path of ['/plain/status-list/unknown', `/neighbour/status-list/${id}`, `/x/status-list/${id}`])
        expect((await fetchList(path)).status, path).to.equal(404);
    });

    it('is served while its tenant is suspended', async () => {
      const token = await service.rootToken();
      const suspend = (status: string) => service.call('PATCH', '/tenant/plain', { token, json: { status } });
      expect((await suspend('suspended')).status).to.equal(200);
      expect((await fetchList(uri)).status).to.equal(200);
      expect((await service.call('GET', '/plain/status-lists')).status).to.equal(200);
      expect((await service.call('POST', '/plain/nonce')).status).to.equal(404);
      expect((await suspend('active')).status).to.equal(200);
    });

    it('of one bit rejects a suspension and changes nothing', async () => {
      const before = await fetchList(uri);
      const refused = await revoke(tenant, { sessionId: held.session, status: 2 });
      expect([refused.status, refused.body.code]).to.deep.equal([400, 'invalid_input']);
      expect(refused.body.errors[0].path).to.equal('status');
      expect((await fetchList(uri)).text).to.equal(before.text);
      for (const status of [3, -1, '1', null]) {
        const answer = await revoke(tenant, { sessionId: held.session, status });
        expect(answer.status, String(status)).to.equal(400);
      }
      expect((await revoke(tenant, { sessionId: 'unknown', status: 1 })).status).to.equal(404);
    });

    it('shows a change when its lifetime ends, and not earlier', async () => {
      const { idx } = referenceIn(held.text);
      const before = await fetchList(uri);
      expect((await revoke(tenant, { sessionId: held.session, status: 1 })).status).to.equal(201);
      const still = await fetchList(uri);
      expect([still.text, entriesOf(still).at(idx)]).to.deep.equal([before.text, 0]);
      const clock = sinon.useFakeTimers({ now: Date.now() + 3_601_000, toFake: ['Date'] });
      try {
        const fresh = await fetchList(uri);
        expect(entriesOf(fresh).at(idx)).to.equal(1);
        expect(entriesOf(fresh).set).to.equal(1);
        expect(decode(fresh.text).payload['iat']).to.be.greaterThan(decode(before.text).payload['iat']);
      } finally {
        clock.restore();
      }
    });
  });

  it('show a change at once where the tenant configures it', async () => {
    const tenant = await issuer('at-once', { immediateUpdate: true, bits: 2, ttl: 60 });
    const held = await issue(service, tenant, 'card');
    const { uri, idx } = referenceIn(held.text);
    expect(entriesOf(await fetchList(uri))).to.include({ bits: 2, set: 0 });
    const etags = new Set<string | null>();
    for (const status of [2, 0, 2, 1]) {
      const answer = await revoke(tenant, { sessionId: held.session, status });
      expect(answer.body).to.deep.equal({ sessionId: held.session, status, changed: 1 });
      const list = await fetchList(uri);
      expect(entriesOf(list).at(idx)).to.equal(status);
      expect(decode(list.text).payload['ttl']).to.equal(60);
      etags.add(list.headers.get('etag'));
    }
    expect(etags.size).to.be.greaterThan(2);
    for (const status of [0, 2]) {
      const answer = await revoke(tenant, { sessionId: held.session, status });
      expect([answer.status, answer.body.code], answer.text).to.deep.equal([409, 'conflict']);
    }
    expect(entriesOf(await fetchList(uri)).at(idx), 'revoked is final').to.equal(1);
    const repeated = await revoke(tenant, { sessionId: held.session, status: 1 });
    expect([repeated.status, repeated.body.changed], 'nothing changes').to.deep.equal([201, 0]);
  });

  it('can suspend credentials that are issued after the tenant enabled it', async () => {
    const tenant = await issuer('wishing', { immediateUpdate: true });
    const before = await issue(service, tenant, 'card');
    const refused = await revoke(tenant, { sessionId: before.session, status: 2 });
    expect([refused.status, refused.body.errors?.[0]?.path], refused.text).to.deep.equal([400, 'status']);
    expect(refused.body.detail).to.include('PUT /status-list-config');
    const json = { bits: 2, immediateUpdate: true };
    const put = await service.call('PUT', '/status-list-config', { token: tenant.token, json });
    expect(put.status, put.text).to.equal(200);
    const after = await issue(service, tenant, 'card');
    const { uri, idx } = referenceIn(after.text);
    expect(uri).not.to.equal(referenceIn(before.text).uri);
    expect((await revoke(tenant, { sessionId: after.session, status: 2 })).status).to.equal(201);
    expect(entriesOf(await fetchList(uri)).at(idx)).to.equal(2);
    expect((await revoke(tenant, { sessionId: before.session, status: 1 })).status, 'the older one').to.equal(201);
  });

  it('change for one configuration of a session, or for all', async () => {
    const tenant = await issuer('two', { immediateUpdate: true, bits: 2 });
    const second = { ...CARD, id: 'second' };
    await service.call('POST', '/issuer/credentials', { token: tenant.token, json: second });
    const wallet = new RawWallet(service, 'two');
    const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card', 'second'] };
    const offer = (await service.call('POST', '/issuer/offer', { token: tenant.token, json })).body;
    const token = await wallet.accessToken(offer.uri);
    const references: { idx: number; uri: string }[] = [];
    for (const id of ['card', 'second']) references.push(referenceIn((await wallet.request(token, id)).body.credentials[0].credential));
    const statuses = async () => {
      const lists = await Promise.all(references.map(({ uri }) => fetchList(uri)));
      return lists.map((list, i) => entriesOf(list).at(references[i]?.idx ?? -1));
    };
    const one = { sessionId: offer.session, status: 2, credentialConfigurationId: 'second' };
    expect((await revoke(tenant, one)).body.changed).to.equal(1);
    expect(await statuses()).to.deep.equal([0, 2]);
    expect((await wallet.request(token, 'second')).status).to.equal(400);
    expect((await revoke(tenant, { ...one, status: 0 })).body.changed).to.equal(1);
    const again = await wallet.request(token, 'second');
    expect(again.status, 'reinstated').to.equal(200);
    references.push(referenceIn(again.body.credentials[0].credential));
    expect((await revoke(tenant, one)).body.changed).to.equal(2);
    expect(await statuses()).to.deep.equal([0, 2, 2]);
    expect((await revoke(tenant, { sessionId: offer.session, status: 2 })).body.changed, 'two were suspended').to.equal(1);
    expect(await statuses()).to.deep.equal([2, 2, 2]);
    for (const id of ['card', 'second']) {
      const refused = await wallet.request(token, id);
      expect([refused.status, refused.body.error], 'no new one for a revoked one').to.deep.equal([400, 'credential_request_denied']);
    }
    const removed = await service.call('DELETE', `/session/${offer.session}`, { token: tenant.token });
    expect(removed.status).to.equal(200);
    const reinstated = await revoke(tenant, { sessionId: offer.session, status: 0 });
    expect(reinstated.body.changed, 'the credential lives longer than its session').to.equal(3);
    expect(await statuses()).to.deep.equal([0, 0, 0]);
  });

  it('are created again when the last one is full, and both resolve and are listed', async () => {
    const tenant = await issuer('small', { capacity: 100, immediateUpdate: true }, 50);
    const wallet = new RawWallet(service, 'small');
    const references: { idx: number; uri: string }[] = [];
    let last = '';
    for (const size of [50, 50, 20]) {
      const json = { response_type: 'uri', flow: 'pre_authorized_code', credentialConfigurationIds: ['card'] };
      const offer = (await service.call('POST', '/issuer/offer', { token: tenant.token, json })).body;
      const token = await wallet.accessToken(offer.uri);
      const nonce = await wallet.nonce();
      const jwt = Array.from({ length: size }, () => keyProof(newKey(), wallet.issuer, nonce));
      const body = { credential_configuration_id: 'card', proofs: { jwt } };
      const issued = await wallet.request(token, 'card', { body });
      expect(issued.status, issued.text).to.equal(200);
      for (const { credential } of issued.body.credentials) references.push(referenceIn(credential));
      last = offer.session;
    }
    expect(references).to.have.length(120);
    expect(new Set(references.map(({ uri, idx }) => `${uri} ${idx}`)).size, 'none twice').to.equal(120);
    const uris = [...new Set(references.map(({ uri }) => uri))];
    expect(uris).to.have.length(2);
    const sizes = uris.map((uri) => references.filter((reference) => reference.uri === uri).length);
    expect(sizes).to.deep.equal([100, 20]);
    expect((await revoke(tenant, { sessionId: last, status: 1 })).body.changed).to.equal(20);
    const lists = await Promise.all(uris.map((uri) => fetchList(uri)));
    expect(lists.map((list) => entriesOf(list).size)).to.deep.equal([104, 104]);
    for (const { uri, idx } of references) expect(entriesOf(lists[uris.indexOf(uri)] as Answer).at(idx)).to.equal(uri === uris[1] ? 1 : 0);
    const aggregated = await service.call('GET', '/small/status-lists');
    expect(aggregated.status).to.equal(200);
    expect(aggregated.headers.get('content-type')).to.equal('application/json');
    expect(aggregated.headers.get('access-control-allow-origin')).to.equal('*');
    expect(Object.keys(aggregated.body)).to.deep.equal(['status_lists']);
    expect(aggregated.body.status_lists).to.have.members(uris);
  });

  it('are excluded from aggregation where the tenant configures it', async () => {
    const tenant = await issuer('alone', { enableAggregation: false });
    const { uri } = referenceIn((await issue(service, tenant, 'card')).text);
    expect(decode((await fetchList(uri)).text).payload['status_list']).to.have.all.keys('bits', 'lst');
    expect((await service.call('GET', '/alone/status-lists')).status).to.equal(404);
    expect((await service.call('GET', '/nobody/status-lists')).status).to.equal(404);
    await issuer('fresh');
    expect((await service.call('GET', '/fresh/status-lists')).body).to.deep.equal({ status_lists: [] });
  });

  it('have the parameters of the tenant settings, which are validated, and null resets them', async () => {
    const { token } = await createTenant(service, 'shaped');
    const put = (json: object) => service.call('PUT', '/status-list-config', { token, json });
    const defaults = { capacity: 100_000, bits: 1, ttl: 3600, immediateUpdate: false, enableAggregation: true };
    expect((await service.call('GET', '/status-list-config', { token })).body).to.deep.equal(defaults);
    for (const bad of [{ capacity: 99 }, { bits: 3 }, { ttl: 59 }, { immediateUpdate: 'yes' }, { bits: '1' }])
      expect((await put(bad)).status, JSON.stringify(bad)).to.equal(400);
    const wanted = { capacity: 200, bits: 4, ttl: 60, immediateUpdate: true, enableAggregation: false };
    const { warnings, ...shape } = (await put(wanted)).body;
    expect(shape).to.deep.equal(wanted);
    expect(warnings.map(({ member }: { member: string }) => member)).to.deep.equal(['capacity']);
    expect((await put({ bits: null, capacity: null })).body).to.deep.equal({ ...wanted, bits: 1, capacity: 100_000, warnings: [] });
    const none = { ttl: null, immediateUpdate: null, enableAggregation: null };
    expect((await put(none)).body).to.deep.equal({ ...defaults, warnings: [] });
  });
});
