import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import { compressList } from '../support/compress-list.ts';
import { makeCrl } from '../support/crl-maker.ts';
import { makeJwt, now } from '../support/raw-wallet.ts';
import { type Certified, certify, DOCUMENT_SIGNER, pem } from '../support/test-certificates.ts';
import { CARD_QUERY, LICENCE_QUERY, openWorld, type World } from './negative-verification/world.ts';

type Format = 'card' | 'licence';
const QUERIES = { card: CARD_QUERY, licence: LICENCE_QUERY } as const;

describe('Revoked certificates of issuers, through HTTP', () => {
  let world: World;
  let publisher: Backend;
  let root: Certified;
  let middle: Certified;
  let leaf: Certified;
  let nth = 0;

  before(async () => {
    world = await openWorld();
    publisher = await Backend.start();
  });
  after(async () => {
    await publisher?.close();
    await world?.close();
  });

  beforeEach(async () => {
    nth++;
    root = await certify({ name: 'Root', ca: true });
    middle = await certify({ name: 'Middle', by: root, ca: true, lists: [address('root')] });
    leaf = await certify({ name: 'Leaf', by: middle, lists: [address('middle')], ...DOCUMENT_SIGNER });
    serve('root', makeCrl({ by: root }));
    serve('middle', makeCrl({ by: middle }));
  });

  const path = (name: string) => `/${nth}/${name}.crl`;
  const address = (name: string) => publisher.url + path(name);
  const calls = () => publisher.calls.filter((call) => call.path.startsWith(`/${nth}/`)).length;
  const serve = (name: string, body: Buffer) =>
    publisher.on(path(name), (response) =>
      response.writeHead(200, { 'Content-Type': 'application/pkix-crl' }).end(body),
    );
  const ask = (format: Format, certificateRevocation: string | null | undefined, changes = {}) =>
    world.ask({
      dcql_query: { credentials: [QUERIES[format]] },
      trustAnchors: [{ certificate: pem(root) }],
      ...(certificateRevocation === undefined ? {} : { certificateRevocation }),
      ...changes,
    });
  const presented = async (format: Format, asked: Awaited<ReturnType<typeof ask>>, tenant?: 'rival') => {
    const issuer = { key: leaf, chain: [leaf.certificate, middle.certificate] };
    await world.answer(asked, { [format]: [world[format](asked, { issuer })] });
    const { status, failure, report } = await world.session(asked, tenant);
    const row = report.find((one: { check: string }) => one.check === 'certificate revocation');
    return { outcome: status === 'completed' ? status : failure.message, row };
  };

  for (const format of ['card', 'licence'] as const) {
    it(`refuse a ${format} where it is required, and where a list can be had`, async () => {
      const good = await presented(format, await ask(format, 'required'));
      expect(good.outcome).to.equal('completed');
      expect(good.row).to.include({ result: 'passed', section: 'RFC 5280 section 6.3' });
      expect(good.row.input).to.include(`signer: not on ${address('middle')}`);
      serve('middle', makeCrl({ by: middle, revoked: [leaf] }));
      await world.admin('DELETE', '/cache');
      for (const mode of ['required', 'if-available']) {
        const { outcome, row } = await presented(format, await ask(format, mode));
        expect(outcome).to.include(`${format}: certificate_revoked`);
        expect(row).to.include({ result: 'failed', reason: 'certificate_revoked' });
        expect(row.detail).to.include('signer: keyCompromise');
      }
      for (const mode of ['off', null, undefined]) {
        expect(await presented(format, await ask(format, mode))).to.deep.equal({
          outcome: 'completed',
          row: undefined,
        });
      }
    });

    it(`refuse a ${format} whose list cannot be had where it is required, else the report says so`, async () => {
      publisher.on(path('root'), (response) => response.writeHead(302, { Location: address('root') }).end());
      const required = await presented(format, await ask(format, 'required'));
      expect(required.outcome).to.include(`${format}: revocation_unavailable`);
      expect(required.row).to.include({ result: 'failed', reason: 'revocation_unavailable' });
      const available = await presented(format, await ask(format, 'if-available'));
      expect(available.outcome).to.equal('completed');
      expect(available.row.input).to.include('revocation_unavailable: authority 1').and.include('redirect');
    });
  }

  it('that signed a status list refuse, too', async () => {
    const revoker = await certify({ name: 'Revoker', by: root, lists: [address('root')] });
    const uri = address('status');
    const list = makeJwt(
      revoker,
      { alg: 'ES256', typ: 'statuslist+jwt', x5c: [revoker.certificate] },
      { sub: uri, iat: now(), ttl: 3600, status_list: { bits: 1, lst: compressList(Buffer.alloc(8)) } },
    );
    publisher.on(path('status'), (response) =>
      response.writeHead(200, { 'Content-Type': 'application/statuslist+jwt' }).end(list),
    );
    const outcome = async (mode: string) => {
      const asked = await ask('card', mode);
      const issuer = { key: leaf, chain: [leaf.certificate, middle.certificate] };
      const status = { status_list: { idx: 1, uri } };
      await world.answer(asked, {
        card: [world.card(asked, { issuer, payload: (all) => ({ ...all, status }) })],
      });
      const { status: ended, report } = await world.session(asked);
      return ended === 'completed' ? ended : report.find((one: { detail?: string }) => one.detail).detail;
    };
    expect(await outcome('required')).to.equal('completed');
    serve('root', makeCrl({ by: root, revoked: [revoker] }));
    await world.admin('DELETE', '/cache');
    for (const mode of ['required', 'if-available']) {
      expect(await outcome(mode)).to.include('certificate_revoked: signer of the status list: keyCompromise');
    }
    expect(await outcome('off')).to.equal('completed');
  });

  it('are not asked for where the list is larger than 2 MiB', async () => {
    serve('middle', Buffer.concat([makeCrl({ by: middle }), Buffer.alloc(2 * 1024 * 1024)]));
    const { row } = await presented('card', await ask('card', 'required'));
    expect(row.detail).to.include('too_large');
  });

  it('of strangers have nobody called, nor do credentials that are bad or of somebody else', async () => {
    const before = calls();
    const stranger = { trustAnchors: [{ certificate: pem(await certify({ name: 'Root', ca: true })) }] };
    expect((await presented('card', await ask('card', 'required', stranger))).outcome).to.include(
      'untrusted_chain',
    );
    const issuer = { key: leaf, chain: [leaf.certificate, middle.certificate] };
    const asked = await ask('card', 'required');
    const other = await ask('card', 'required');
    await world.answer(asked, { card: [world.card(other, { issuer })] });
    expect((await world.session(asked))['failure'].message).to.include('nonce_mismatch');
    expect(calls()).to.equal(before);
  });

  it('are asked for once by twenty-four presentations at once', async () => {
    const asked = await Promise.all(Array.from({ length: 24 }, () => ask('card', 'required')));
    const outcomes = await Promise.all(asked.map((one) => presented('card', one)));
    expect(outcomes.map(({ outcome }) => outcome)).to.deep.equal(Array(24).fill('completed'));
    expect(calls()).to.equal(2);
    const { body } = await world.admin('GET', '/cache/stats');
    const kept = body.revocationListCache.entries.map(({ uri }: { uri: string }) => uri);
    expect(kept).to.include.members([address('root'), address('middle')]);
  });

  it('are asked for by each tenant alone', async () => {
    await presented('card', await ask('card', 'required'));
    const rival = { dcql_query: { credentials: [CARD_QUERY] }, trustAnchors: [{ certificate: pem(root) }] };
    serve('middle', makeCrl({ by: middle, revoked: [leaf] }));
    const asked = await world.ask({ ...rival, certificateRevocation: 'required' }, 'rival');
    expect((await presented('card', asked, 'rival')).outcome).to.include('certificate_revoked');
    expect(calls()).to.equal(4);
    expect((await presented('card', await ask('card', 'required'))).outcome, 'its own copy').to.equal(
      'completed',
    );
  });

  it('are one of three words', async () => {
    const body = { id: 'wrong', dcql_query: { credentials: [CARD_QUERY] }, certificateRevocation: 'yes' };
    expect((await world.admin('POST', '/verifier/config', body)).status).to.equal(400);
  });
});
