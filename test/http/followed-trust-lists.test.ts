import { X509Certificate } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import sinon from 'sinon';
import { Backend } from '../support/backend.ts';
import { type HeldCredential, QUERY, Shop } from '../support/present.ts';
import { shortenTimeouts } from '../support/short-timeouts.ts';
import { type CertifiedKey, certify, pem } from '../support/test-certificates.ts';
import { trustList } from '../support/trust-list.ts';
import { LIST_OF_LISTS, signXml, type XmlPointer, xmlList } from '../support/xml-list.ts';

const QEAA = 'http://uri.etsi.org/TrstSvc/Svctype/EAA/Q';
const MEBIBYTE = 1024 * 1024;

describe('Followed trust lists of other publishers', () => {
  let shop: Shop;
  let backend: Backend;
  let operator: CertifiedKey;
  let europe: CertifiedKey;
  let successor: CertifiedKey;
  let issuer: string;
  let names = 0;

  before(async () => {
    shop = await Shop.open();
    backend = await Backend.start();
    [operator, europe, successor] = await Promise.all([
      certify({ name: 'Operator' }),
      certify({ name: 'Europe' }),
      certify({ name: 'Successor' }),
    ]);
    const chain = await shop.call('GET', '/key-chain/signing', undefined, shop.acme.token);
    issuer = chain.body.rootCertificate.replace(/-----[^-]+-----|\s/g, '');
  });
  after(async () => {
    await backend.close();
    await shop.close();
  });

  afterEach(() => sinon.restore());

  const serve = (path: string, text: string | ((response: ServerResponse) => void)) =>
    backend.on(path, (response) => {
      if (typeof text === 'function') text(response);
      else response.writeHead(200, { 'Content-Type': 'application/octet-stream' }).end(text);
    });
  const lote = (signer: CertifiedKey, sequenceNumber: number, certificates = [issuer]) =>
    trustList(
      { entities: [{ name: 'Acme', services: [{ type: 'EAA/Issuance', certificates }] }], signer, sequenceNumber },
      Math.floor(Date.now() / 1000),
    );
  const national = (territory: string, by = operator) =>
    signXml(xmlList({ territory, services: [{ type: QEAA, certificates: [issuer] }] }), by);
  const pointer = (path: string, territory: string, changes: Partial<XmlPointer> = {}): XmlPointer => ({
    ...{ uri: `${backend.url}${path}`, territory, signers: [operator.certificate], ...changes },
  });
  const lotl = (...pointers: XmlPointer[]) => signXml(xmlList({ type: LIST_OF_LISTS, territory: 'EU', pointers }), europe);

  /** Of a presentation where only this list counts: how it ended, and the report of it. */
  const judged = async (id: string) => {
    const asked = await shop.requestPresentation(id);
    await shop.present(asked, await shop.issue('card'));
    const { body } = await shop.call('GET', `/session/${asked.session}`);
    return { status: body.status as string, text: JSON.stringify(body) };
  };
  const follow = async (path: string, changes: object = {}, signer = operator) => {
    const id = `follows-${++names}`;
    const trustAnchors = [{ trustList: `${backend.url}${path}`, signedBy: [pem(signer)], ...changes }];
    await shop.configure({ id, trustAnchors });
    return id;
  };
  const followed = async (path: string) => {
    const { body } = await shop.call('GET', '/trust/lists');
    return body.find(({ uri }: { uri: string }) => uri === `${backend.url}${path}`);
  };
  const faultsOf = async (path: string) => {
    const { body } = await shop.call('GET', '/cache/stats');
    const { failing } = body.trustListCache as { failing: readonly { uri: string }[] };
    return failing.filter(({ uri }) => uri === `${backend.url}${path}`).length;
  };
  const trustListsUp = async () => (await shop.call('GET', '/health')).body.details['trust-lists'].status;
  const forget = async () => expect((await shop.call('DELETE', '/cache/trust-list')).status).to.equal(204);

  it('keep the last valid copy when the signer changes, and follow the new signer after its confirmation', async () => {
    serve('/changed', lote(operator, 1));
    const id = await follow('/changed');
    expect((await judged(id)).status).to.equal('completed');
    const other = await certify({ name: 'Other', ca: true });
    serve('/changed', lote(successor, 2, [issuer, other.certificate]));
    await forget();
    expect((await judged(id)).status, 'the good copy').to.equal('completed');
    const waiting = await followed('/changed');
    expect(waiting.held.signer.certificate).to.equal(pem(successor));
    expect(waiting.sequenceNumber).to.equal(1);

    expect([await faultsOf('/changed'), await trustListsUp()]).to.deep.equal([1, 'down']);

    const confirm = (fingerprint: string, list = waiting.id) => shop.call('POST', `/trust/lists/${list}/confirm-signer`, { fingerprint });
    const wrong = await confirm('A'.repeat(43));
    expect([wrong.status, wrong.body.errors[0].path]).to.deep.equal([400, 'fingerprint']);
    expect((await confirm(waiting.held.signer.fingerprint, 'nothing')).status).to.equal(404);
    expect((await confirm(waiting.held.signer.fingerprint)).status).to.equal(204);
    expect(await faultsOf('/changed'), 'as soon as it is confirmed').to.equal(0);
    expect(await trustListsUp()).to.equal('up');
    const { body } = await shop.call('GET', `/verifier/config/${id}`);
    expect(body.trustAnchors[0].signedBy).to.deep.equal([pem(operator), pem(successor)]);
    expect((await judged(id)).status).to.equal('completed');
    const now = await followed('/changed');
    expect([now.sequenceNumber, now.held]).to.deep.equal([2, null]);
    expect((await confirm(waiting.held.signer.fingerprint)).status, 'once').to.equal(404);
    const audit = await shop.call('GET', '/audit-log?kind=followed-trust-list&sort=asc');
    const told = audit.body.map(({ action, actor }: { action: string; actor: string }) => [action, actor]);
    expect(told[0]).to.deep.equal(['held', 'system']);
    expect(told.at(-1)?.[0]).to.equal('confirmed');
  });

  it('accept the confirmation of a signer by a fingerprint in the format of other programs', async () => {
    const successors = await Promise.all([1, 2, 3].map((at) => certify({ name: `Successor ${at}` })));
    const shapes = [(text: string) => text, (text: string) => text.toLowerCase(), (text: string) => text.replaceAll(':', '')];
    for (const [at, next] of successors.entries()) {
      const path = `/printed-${at}`;
      serve(path, lote(operator, 1));
      const id = await follow(path);
      await judged(id);
      serve(path, lote(next, 2));
      await forget();
      await judged(id);
      const waiting = await followed(path);
      const confirm = (fingerprint: string) => shop.call('POST', `/trust/lists/${waiting.id}/confirm-signer`, { fingerprint });
      // As `openssl x509 -fingerprint -sha256` has it.
      const printed = new X509Certificate(pem(next)).fingerprint256;
      const shape = shapes[at] ?? String;
      const others = new X509Certificate(pem(operator)).fingerprint256;
      for (const wrong of [shape(others), shape(printed).slice(3), printed.replace(':', ' ')]) {
        const refused = await confirm(wrong);
        expect([refused.status, refused.body.errors[0].path], wrong).to.deep.equal([400, 'fingerprint']);
      }
      expect((await confirm(shape(printed))).status, shape(printed)).to.equal(204);
    }
  });

  it('report no earlier retrieval after their copies were deleted', async () => {
    serve('/forgotten', lote(operator, 1));
    await judged(await follow('/forgotten'));
    expect((await followed('/forgotten')).checkedAt).to.match(/^20/);
    await forget();
    expect((await followed('/forgotten')).checkedAt).to.equal(null);
  });

  it('with an unknown signer cannot be confirmed or seen by another tenant', async () => {
    serve('/private', lote(operator, 1));
    await judged(await follow('/private'));
    serve('/private', lote(successor, 2));
    await forget();
    const id = await follow('/private');
    await judged(id);
    const { held, id: list } = await followed('/private');
    const other = await shop.call('GET', '/trust/lists', undefined, shop.acme.token);
    expect(other.body).to.deep.equal([]);
    const { fingerprint } = held.signer;
    const path = `/trust/lists/${list}/confirm-signer`;
    const answer = await shop.call('POST', path, { fingerprint }, shop.acme.token);
    expect(answer.status).to.equal(404);
  });

  it('can be lists of lists that lead to the national lists', async () => {
    serve('/de', national('DE'));
    serve('/lotl', lotl(pointer('/de', 'DE'), pointer('/fr', 'FR')));
    serve('/fr', (response) => response.writeHead(500).end());
    expect((await judged(await follow('/lotl', { follow: {} }, europe))).status).to.equal('completed');
    const unsaid = await judged(await follow('/lotl', {}, europe));
    expect([unsaid.status, /only points to other lists/.test(unsaid.text)]).to.deep.equal(['failed', true]);
    const french = await judged(await follow('/lotl', { follow: { territories: ['FR'] } }, europe));
    expect([french.status, /HTTP status 500/.test(french.text)]).to.deep.equal(['failed', true]);
    expect((await followed('/de')).via).to.equal(`${backend.url}/lotl`);
  });

  it('are not followed to private addresses, regardless of the content of a list of lists', async () => {
    const inside = ['https://169.254.169.254/latest', 'https://10.1.2.3/list', 'http://192.0.2.1/list', 'file:///etc/passwd'];
    const pointers = inside.map((uri) => pointer('', 'DE', { uri }));
    serve('/inside', lotl(...pointers));
    const { status, text } = await judged(await follow('/inside', { follow: {} }, europe));
    expect(status).to.equal('failed');
    expect(text.match(/unavailable: (?:forbidden|refused|blocked|not_allowed)\w*/g)?.length, text).to.equal(4);
  });

  it('are not followed in cycles', async () => {
    serve(
      '/circle',
      lotl(pointer('/circle', 'EU', { signers: [europe.certificate] }), pointer('/circle2', 'EU', { signers: [europe.certificate] })),
    );
    serve('/circle2', lotl(pointer('/circle', 'EU', { signers: [europe.certificate] })));
    const id = await follow('/circle', { follow: {} }, europe);
    const written = backend.callsTo('/circle').length;
    expect([written, backend.callsTo('/circle2').length], 'the write').to.deep.equal([1, 0]);
    const { status } = await judged(id);
    expect(status).to.equal('failed');
    expect([backend.callsTo('/circle').length - written, backend.callsTo('/circle2').length]).to.deep.equal([1, 1]);
  });

  it('make no issuer trusted when the address serves the list of another territory', async () => {
    serve('/swapped', national('FR'));
    serve('/swapping', lotl(pointer('/swapped', 'DE')));
    const { status, text } = await judged(await follow('/swapping', { follow: {} }, europe));
    expect([status, /another_list: its territory is FR, not DE/.test(text)]).to.deep.equal(['failed', true]);
  });

  it('make no issuer trusted when they are replayed, endless or never answer', async () => {
    serve('/replayed', lote(operator, 7));
    const id = await follow('/replayed');
    expect((await judged(id)).status).to.equal('completed');
    serve('/replayed', lote(operator, 6));
    await forget();
    const replayed = await judged(id);
    expect([replayed.status, /sequence_went_back/.test(replayed.text)]).to.deep.equal(['failed', true]);

    let sent = 0;
    serve('/huge', (response) => {
      response.writeHead(200, { 'Content-Type': 'application/xml' });
      const more = () => {
        while (sent < 50 * MEBIBYTE) {
          sent += MEBIBYTE;
          if (!response.write('<a>'.repeat(MEBIBYTE / 3))) return;
        }
        response.end();
      };
      response.on('drain', more);
      more();
    });
    const huge = await judged(await follow('/huge'));
    expect([huge.status, /too_large/.test(huge.text)]).to.deep.equal(['failed', true]);
    expect(sent).to.be.lessThan(50 * MEBIBYTE);

    shortenTimeouts(shop.service);
    serve('/silent', () => {});
    const silent = await judged(await follow('/silent'));
    expect([silent.status, /timeout/.test(silent.text)]).to.deep.equal(['failed', true]);
  });

  it('are read without blocking the service, regardless of their size', async () => {
    const services = Array.from({ length: 700 }, (_, at) => ({
      type: at === 0 ? QEAA : 'http://uri.etsi.org/TrstSvc/Svctype/CA/QC',
      certificates: [issuer, operator.certificate],
    }));
    const large = signXml(xmlList({ territory: 'DE', services }), operator);
    expect(large.length).to.be.greaterThan(MEBIBYTE);
    serve('/large', large);
    expect((await judged(await follow('/large'))).status).to.equal('completed');
  });
});

describe('A published trust list that a verifier reads', () => {
  let shop: Shop;
  let operator: string;
  const asAcme = async (method: string, path: string, json?: unknown) => {
    const answer = await shop.call(method, path, json, shop.acme.token);
    expect(answer.status, answer.text).to.be.oneOf([200, 201]);
    return answer.body;
  };

  before(async () => {
    shop = await Shop.open();
    operator = (await asAcme('GET', '/key-chain/trust-list')).rootCertificate;
  });
  after(() => shop.close());

  /** The outcome of a presentation of a revocable credential where only this list counts. */
  const judged = async (list: string, signedBy = operator) => {
    const trustList = `${shop.service.address}/acme/trust-list/${list}`;
    await shop.configure({ id: list, trustAnchors: [{ trustList, signedBy: [signedBy] }] });
    const asked = await shop.requestPresentation(list);
    await shop.present(asked, await shop.issue('card-status'));
    return (await shop.call('GET', `/session/${asked.session}`)).body.status;
  };
  const own = { type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } };

  it('makes the issuer in the list trusted, and its status lists', async () => {
    const entities = [{ ...own, revocationKeyChainId: 'status-list' }];
    await asAcme('POST', '/trust-list', { id: 'issuers', entities });
    expect(await judged('issuers')).to.equal('completed');
  });

  it('makes no other issuer trusted, and none if another key signed the list', async () => {
    const other = pem(await certify({ name: 'Other', ca: true }));
    const external = { type: 'external', issuerCertPem: other, info: { name: 'Other', country: 'DE', streetAddress: 'Weg 1' } };
    await asAcme('POST', '/trust-list', { id: 'others', entities: [external] });
    await asAcme('POST', '/trust-list', { id: 'foreign', entities: [own] });
    expect(await judged('others')).to.equal('failed');
    expect(await judged('foreign', other)).to.equal('failed');
  });

  it('can restart its sequence numbers after the verifier deleted the old ones on demand', async () => {
    const signer = await certify({ name: 'Operator' });
    const { rootCertificate } = await asAcme('GET', '/key-chain/signing');
    const certificates = [rootCertificate.replace(/-----[^-]+-----|\s/g, '')];
    const entities = [{ name: 'Acme', services: [{ type: 'EAA/Issuance', certificates }] }];
    const backend = await Backend.start();
    const judgedBy = async (sequenceNumber: number) => {
      backend.on('/list', (response) => {
        const list = trustList({ entities, signer, sequenceNumber }, Math.floor(Date.now() / 1000));
        response.writeHead(200, { 'Content-Type': 'application/jwt' }).end(list);
      });
      const trustAnchors = [{ trustList: `${backend.url}/list`, signedBy: [pem(signer)] }];
      await shop.configure({ id: 'renumbered', trustAnchors });
      const asked = await shop.requestPresentation('renumbered');
      await shop.present(asked, await shop.issue('card'));
      return (await shop.call('GET', `/session/${asked.session}`)).body.status;
    };
    const forget = async (query: string) => expect((await shop.call('DELETE', `/cache/trust-list${query}`)).status).to.equal(204);
    try {
      expect(await judgedBy(7)).to.equal('completed');
      for (const query of ['', '?releases=false']) {
        await forget(query);
        expect(await judgedBy(1), query).to.equal('failed');
      }
      expect((await shop.call('DELETE', '/cache/trust-list?releases=yes')).status).to.equal(400);
      await forget('?releases=true');
      expect(await judgedBy(1)).to.equal('completed');
    } finally {
      await backend.close();
    }
  });

  it('of wallet providers makes no issuer trusted', async () => {
    const LoTEType = 'http://uri.etsi.org/19602/LoTEType/EUWalletProvidersList';
    const scheme = {
      LoTEType,
      SchemeOperatorName: [{ lang: 'en', value: 'Lister' }],
      SchemeOperatorAddress: {
        SchemeOperatorPostalAddress: [{ lang: 'en', StreetAddress: 'Main Street 1', Country: 'DE' }],
        SchemeOperatorElectronicAddress: [{ lang: 'en', uriValue: 'mailto:lists@acme.example' }],
      },
      SchemeName: [{ lang: 'en', value: 'DE:Wallets' }],
      SchemeInformationURI: [{ lang: 'en', uriValue: 'https://acme.example/scheme' }],
      PolicyOrLegalNotice: [{ LoTELegalNotice: 'As published.' }],
    };
    const data = { LoTE: { ListAndSchemeInformation: scheme } };
    const lister = { id: 'lister', usageType: 'trustList', organization: 'Lister', country: 'DE' };
    await asAcme('POST', '/key-chain', lister);
    await asAcme('POST', '/trust-list', { id: 'wallets', keyChainId: 'lister', entities: [own], data });
    expect(await judged('wallets')).to.equal('failed');
  });
});

describe('Trust lists of this service as anchors', () => {
  let shop: Shop;
  let held: HeldCredential;
  let list: string;

  before(async () => {
    shop = await Shop.open();
    list = `${shop.service.address}/acme/trust-list/issuers`;
    await publish('POST', '/trust-list', { id: 'issuers', entities: [self()] });
    await shop.configure({ id: 'listed', trustAnchors: [{ trustList: list }] });
    held = await shop.issue('card-status');
  });
  after(() => shop.close());

  const self = () => ({ type: 'internal', issuerKeyChainId: 'signing', info: { name: 'Acme', country: 'DE', streetAddress: 'Weg 1' } });
  async function publish(method: string, path: string, json: object) {
    const answer = await shop.call(method, path, json, shop.acme.token);
    expect(answer.status, answer.text).to.equal(method === 'POST' ? 201 : 200);
  }
  const attempt = async (requestId = 'listed', credential = held) => {
    const asked = await shop.requestPresentation(requestId);
    const { status } = await shop.present(asked, credential);
    const { report } = await shop.session(asked.session);
    return { status, report: JSON.stringify(report) };
  };
  const clear = async (path: string) => expect((await shop.call('DELETE', path)).status, path).to.equal(204);
  const stats = async () => (await shop.call('GET', '/cache/stats')).body;

  it('make issuers trusted without a certificate in the configuration, and the report names them', async () => {
    const { status, report } = await attempt();
    expect(status, report).to.equal(200);
    expect(report).to.include(`Acme on ${list} number 1`);
  });

  it('are cached, counted and deleted from the cache on demand', async () => {
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

  it('are requested by a query', async () => {
    const [query] = QUERY.credentials;
    const demand = (values: string[]) => ({
      id: 'demanding',
      dcql_query: { credentials: [{ ...query, trusted_authorities: [{ type: 'etsi_tl', values }] }] },
      trustAnchors: [{ trustList: list }],
    });
    await shop.configure(demand([list]));
    expect((await attempt('demanding')).status).to.equal(200);
    const other = await shop.call('POST', '/verifier/config', demand(['https://other.example/lote']));
    expect([other.status, other.body.errors[0].path]).to.deep.equal([400, 'dcql_query.credentials.0.trusted_authorities.0.values.0']);
    const federation = demand([list]);
    const [credential] = federation.dcql_query.credentials;
    const unsupported = {
      ...federation,
      dcql_query: { credentials: [{ ...credential, trusted_authorities: [{ type: 'openid_federation', values: ['x'] }] }] },
    };
    expect((await shop.call('POST', '/verifier/config', unsupported)).status).to.equal(400);
  });

  it('are read with the configured signer if there is one', async () => {
    const stranger = pem(await certify({ name: 'Stranger' }));
    await shop.configure({ id: 'pinned', trustAnchors: [{ trustList: list, signedBy: [stranger] }] });
    const { status, report } = await attempt('pinned');
    expect([status, report]).to.satisfy(([code, text]: [number, string]) => code === 400 && /untrusted_signer/.test(text));
  });

  it('make no issuer trusted when the list does not exist', async () => {
    for (const uri of [`${list}-gone`, list.replace('/acme/', '/nobody/')]) {
      await shop.configure({ id: 'gone', trustAnchors: [{ trustList: uri }] });
      const { status, report } = await attempt('gone');
      expect(status).to.equal(400);
      expect(report).to.match(/unavailable: this service publishes no such list/);
    }
  });

  it('are rejected from another server without a configured signer', async () => {
    for (const trustList of ['https://elsewhere.example/lote', `${shop.service.address}/acme/other/issuers`]) {
      const json = { id: 'bad', dcql_query: QUERY, trustAnchors: [{ trustList }] };
      const answer = await shop.call('POST', '/verifier/config', json);
      expect([answer.status, answer.body.errors[0].path]).to.deep.equal([400, 'trustAnchors.0.signedBy']);
    }
  });

  it('define which status lists are trusted, including those of this service', async () => {
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

  it('make an issuer untrusted once it is removed from the list', async () => {
    expect((await attempt()).status).to.equal(200);
    const university = pem(await certify({ name: 'University', ca: true }));
    const others = [{ type: 'external', issuerCertPem: university, info: { name: 'University', country: 'FR', streetAddress: 'Rue 1' } }];
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
