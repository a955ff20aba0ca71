import { X509Certificate } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { expect } from 'chai';
import { Backend } from '../support/backend.ts';
import { Shop } from '../support/present.ts';
import { type Certified, certify, pem } from '../support/test-certificates.ts';
import { trustList } from '../support/trust-list.ts';
import { LIST_OF_LISTS, signXml, type XmlPointer, xmlList } from '../support/xml-list.ts';

const QEAA = 'http://uri.etsi.org/TrstSvc/Svctype/EAA/Q';
const MEBIBYTE = 1024 * 1024;

describe('Trust lists of others that a verifier follows', () => {
  let shop: Shop;
  let backend: Backend;
  let operator: Certified;
  let europe: Certified;
  let successor: Certified;
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

  const serve = (path: string, text: string | ((response: ServerResponse) => void)) =>
    backend.on(path, (response) => {
      if (typeof text === 'function') text(response);
      else response.writeHead(200, { 'Content-Type': 'application/octet-stream' }).end(text);
    });
  const lote = (signer: Certified, sequenceNumber: number, certificates = [issuer]) =>
    trustList(
      {
        entities: [{ name: 'Acme', services: [{ type: 'EAA/Issuance', certificates }] }],
        signer,
        sequenceNumber,
      },
      Math.floor(Date.now() / 1000),
    );
  const national = (territory: string, by = operator) =>
    signXml(xmlList({ territory, services: [{ type: QEAA, certificates: [issuer] }] }), by);
  const pointer = (path: string, territory: string, changes: Partial<XmlPointer> = {}): XmlPointer => ({
    ...{ uri: `${backend.url}${path}`, territory, signers: [operator.certificate], ...changes },
  });
  const lotl = (...pointers: XmlPointer[]) =>
    signXml(xmlList({ type: LIST_OF_LISTS, territory: 'EU', pointers }), europe);

  /** Of a presentation where only this list counts: how it ended, and the report of it. */
  const judged = async (id: string) => {
    const asked = await shop.ask(id);
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

  it('go on with the good copy when somebody else signs, and follow the new signer once a person confirms it', async () => {
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

    const confirm = (fingerprint: string, list = waiting.id) =>
      shop.call('POST', `/trust/lists/${list}/confirm-signer`, { fingerprint });
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

  it('have a signer confirmed by its fingerprint as other programs print it', async () => {
    const successors = await Promise.all([1, 2, 3].map((at) => certify({ name: `Successor ${at}` })));
    const shapes = [
      (text: string) => text,
      (text: string) => text.toLowerCase(),
      (text: string) => text.replaceAll(':', ''),
    ];
    for (const [at, next] of successors.entries()) {
      const path = `/printed-${at}`;
      serve(path, lote(operator, 1));
      const id = await follow(path);
      await judged(id);
      serve(path, lote(next, 2));
      await forget();
      await judged(id);
      const waiting = await followed(path);
      const confirm = (fingerprint: string) =>
        shop.call('POST', `/trust/lists/${waiting.id}/confirm-signer`, { fingerprint });
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

  it('were not found again when their copies are forgotten, which is no time long ago', async () => {
    serve('/forgotten', lote(operator, 1));
    await judged(await follow('/forgotten'));
    expect((await followed('/forgotten')).checkedAt).to.match(/^20/);
    await forget();
    expect((await followed('/forgotten')).checkedAt).to.equal(null);
  });

  it('that nobody vouches for are not confirmed by another tenant, and it sees none of them', async () => {
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

  it('may be lists of lists, which lead to the national lists', async () => {
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

  it('are not followed to private addresses, whatever a list of lists says', async () => {
    const inside = [
      'https://169.254.169.254/latest',
      'https://10.1.2.3/list',
      'http://192.0.2.1/list',
      'file:///etc/passwd',
    ];
    const pointers = inside.map((uri) => pointer('', 'DE', { uri }));
    serve('/inside', lotl(...pointers));
    const { status, text } = await judged(await follow('/inside', { follow: {} }, europe));
    expect(status).to.equal('failed');
    expect(text.match(/unavailable: (?:forbidden|refused|blocked|not_allowed)\w*/g)?.length, text).to.equal(
      4,
    );
  });

  it('go round in no circle', async () => {
    serve(
      '/circle',
      lotl(
        pointer('/circle', 'EU', { signers: [europe.certificate] }),
        pointer('/circle2', 'EU', { signers: [europe.certificate] }),
      ),
    );
    serve('/circle2', lotl(pointer('/circle', 'EU', { signers: [europe.certificate] })));
    const id = await follow('/circle', { follow: {} }, europe);
    const written = backend.at('/circle').length;
    expect([written, backend.at('/circle2').length], 'the write').to.deep.equal([1, 0]);
    const { status } = await judged(id);
    expect(status).to.equal('failed');
    expect([backend.at('/circle').length - written, backend.at('/circle2').length]).to.deep.equal([1, 1]);
  });

  it('vouch for nobody when another territory’s list stands at the address', async () => {
    serve('/swapped', national('FR'));
    serve('/swapping', lotl(pointer('/swapped', 'DE')));
    const { status, text } = await judged(await follow('/swapping', { follow: {} }, europe));
    expect([status, /another_list: of FR instead of DE/.test(text)]).to.deep.equal(['failed', true]);
  });

  it('vouch for nobody when they are replayed, endless, or never answer', async () => {
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

    serve('/silent', () => {});
    const silent = await judged(await follow('/silent'));
    expect([silent.status, /timeout/.test(silent.text)]).to.deep.equal(['failed', true]);
  });

  it('are read while the service goes on, however large they are', async () => {
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
