import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { InProcessEventBus } from '../../../adapters/dispatch/in-process/event-bus.ts';
import { OcspResponders } from '../../../application/certificate-status/ocsp-responders.ts';
import { RevocationLists } from '../../../application/certificate-status/revocation-lists.ts';
import { RevocationVerifier } from '../../../application/certificate-status/verify-revocation.ts';
import type { AuthorityPublisher } from '../../../application/keys/publish-authorities.ts';
import { Log } from '../../../application/ports/log.ts';
import { RemoteError } from '../../../application/ports/remote.ts';
import type { ServiceSettings } from '../../../application/ports/settings.ts';
import { parseCertificate } from '../../../domain/formats/der/certificate.ts';
import { parseCrl } from '../../../domain/formats/der/crl.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { type CertificateRevocation, findListProblem } from '../../../domain/verification/certificate-revocation.ts';
import {
  type CrlOptions,
  crlNumber,
  deltaIndicator,
  distributionPointName,
  extension,
  issuingDistributionPoint,
  makeCrl,
  nameParts,
  SCOPE_FLAGS,
} from '../../support/revocation-maker.ts';
import { type CertificateOptions, type CertifiedKey, certify } from '../../support/test-certificates.ts';
import { FakeRemote, SetClock } from '../verification/kit.ts';

const OF_ROOT = 'http://ca.example/root.crl';
const OF_MIDDLE = 'http://ca.example/middle.crl';
const HOUR = 3_600_000;

class NoLog extends Log {
  override info(): void {}
  override warn(): void {}
  override error(): void {}
}

describe('revocation status of issuer certificates', () => {
  let root: CertifiedKey;
  let middle: CertifiedKey;
  let leaf: CertifiedKey;
  let stranger: CertifiedKey;
  let remote: FakeRemote;
  let clock: SetClock;
  let lists: RevocationLists;
  let eventBus: InProcessEventBus;
  let served: Map<string, Buffer | RemoteError | number>;
  const certificates = new NodeCertificates();
  /** None of the lists is of this service. */
  const newLists = () => {
    const settings = { publicUrl: 'https://vidimus.example' } as ServiceSettings;
    const authorityPublisher = {} as AuthorityPublisher;
    const ports = { remote, certificates, clock, eventBus, settings, authorityPublisher };
    return new RevocationLists({ ...ports, log: new NoLog() });
  };

  before(async () => {
    root = await certify({ name: 'Root', ca: true });
    middle = await certify({ name: 'Middle', by: root, ca: true, crlUrls: [OF_ROOT] });
    leaf = await certify({ name: 'Leaf', by: middle, crlUrls: [OF_MIDDLE] });
    stranger = await certify({ name: 'Stranger', ca: true });
  });

  beforeEach(() => {
    remote = new FakeRemote();
    clock = new SetClock();
    eventBus = new InProcessEventBus();
    lists = newLists();
    served = new Map();
    remote.answer = (url) => {
      const answer = served.get(url) ?? 404;
      if (answer instanceof RemoteError) return answer;
      if (typeof answer === 'number') return { status: answer, contentType: '', body: Buffer.alloc(0) };
      return { status: 200, contentType: 'application/pkix-crl', body: answer };
    };
    serve(OF_ROOT, { by: root });
    serve(OF_MIDDLE, { by: middle });
  });

  const at = (milliseconds: number) => new Date(clock.time + milliseconds);
  const serve = (url: string, options: CrlOptions) =>
    served.set(url, makeCrl({ thisUpdate: at(-HOUR), nextUpdate: at(24 * HOUR), ...options }));

  type Path = { readonly chain?: readonly CertifiedKey[]; readonly anchor?: CertifiedKey; readonly tenantId?: string };
  const check = async (mode: CertificateRevocation = 'required', path: Path = {}): Promise<string> => {
    const { chain = [leaf, middle], anchor = root, tenantId = 'acme' } = path;
    const given = chain.map(({ certificate }) => certificate);
    const anchors = [{ certificate: anchor.certificate }];
    const issuer = certificates.verifyChain(given, anchors, clock.now(), { purpose: 'SD-JWT VC' });
    if (!issuer.trusted) throw new Error(issuer.detail);
    try {
      const checker = new RevocationVerifier({
        revocationLists: lists,
        ocspResponders: new OcspResponders({ remote, certificates, clock, eventBus }),
      });
      return (await checker.verify({ tenantId, mode, chain: given, issuer })) ?? 'nothing asked';
    } catch (error) {
      if (error instanceof Refusal) return error.message;
      throw error;
    }
  };

  it('is not checked if it is disabled', async () => {
    expect(await check('off')).to.equal('nothing asked');
    expect(remote.calls).to.deep.equal([]);
  });

  it('is determined by the list of each issuer below the anchor', async () => {
    const told = await check();
    expect(told.startsWith(`required: signer: not on ${OF_MIDDLE} of `), told).to.equal(true);
    expect(told).to.include(`; authority 1 above the signer: not on ${OF_ROOT}`);
    expect(remote.calls.map(({ url }) => url).toSorted()).to.deep.equal([OF_MIDDLE, OF_ROOT]);
    expect(remote.following.toSorted(), 'also where they have moved').to.deep.equal([OF_MIDDLE, OF_ROOT]);
  });

  it('is determined by a list that writes the name of the issuer in another case', async () => {
    const issuer = await certify({ name: 'MIDDLE', ca: true });
    serve(OF_MIDDLE, { by: middle, issuer });
    expect(await check()).to.include(`signer: not on ${OF_MIDDLE}`);
    lists = newLists();
    serve(OF_MIDDLE, { by: middle, issuer, revoked: [leaf] });
    expect(await check('if-available')).to.match(/^certificate_revoked: signer/);
  });

  for (const mode of ['required', 'if-available'] as const) {
    it(`rejects a signer and an authority that are on a list, with ${mode}`, async () => {
      serve(OF_MIDDLE, { by: middle, revoked: [stranger, leaf] });
      expect(await check(mode)).to.match(/^certificate_revoked: signer: keyCompromise since 2026-06-01T11:00:00/);
      lists = newLists();
      serve(OF_MIDDLE, { by: middle });
      serve(OF_ROOT, { by: root, revoked: [middle] });
      expect(await check(mode)).to.match(/^certificate_revoked: authority 1 above the signer: keyCompromise/);
    });

    it(`rejects a revoked authority in preference to a missing list, with ${mode}`, async () => {
      served.delete(OF_MIDDLE);
      serve(OF_ROOT, { by: root, revoked: [middle] });
      expect(await check(mode)).to.match(/^certificate_revoked: authority 1/);
    });
  }

  it('includes certificates on hold and unknown reason codes', async () => {
    const { serial } = nameParts(leaf.certificate);
    for (const [reason, word] of [
      [6, 'certificateHold'],
      [8, 'removeFromCRL'],
      [99, 'unspecified'],
    ] as const) {
      lists = newLists();
      serve(OF_MIDDLE, { by: middle, revoked: [{ serial, reason }] });
      expect(await check()).to.include(`certificate_revoked: signer: ${word}`);
    }
  });

  describe('on a list that is not valid at this time', () => {
    const times = {
      'out of date': () => ({ thisUpdate: at(-2 * HOUR), nextUpdate: at(0) }),
      'in the future': () => ({ thisUpdate: at(HOUR) }),
    };
    const serialOf = (reason: number) => ({ serial: nameParts(leaf.certificate).serial, reason });
    for (const [fault, timesOf] of Object.entries(times)) {
      for (const mode of ['required', 'if-available'] as const) {
        it(`rejects a signer and an authority that a list ${fault} names, with ${mode}`, async () => {
          serve(OF_MIDDLE, { by: middle, revoked: [leaf], ...timesOf() });
          expect(await check(mode)).to.match(/^certificate_revoked: signer: keyCompromise since/);
          lists = newLists();
          serve(OF_MIDDLE, { by: middle });
          serve(OF_ROOT, { by: root, revoked: [middle], ...timesOf() });
          expect(await check(mode)).to.match(/^certificate_revoked: authority 1 above the signer/);
        });
      }

      it(`is unavailable from a list ${fault} that names other certificates or puts this one on hold`, async () => {
        for (const revoked of [[stranger], [serialOf(6)], [serialOf(8)]]) {
          lists = newLists();
          serve(OF_MIDDLE, { by: middle, revoked, ...timesOf() });
          expect(await check('required'))
            .to.match(/^revocation_unavailable: signer/)
            .and.include(fault);
          expect(await check('if-available'))
            .to.match(/^if-available: revocation_unavailable/)
            .and.include(fault);
        }
      });
    }

    it('accepts a certificate on an outdated list with a signature of another key or for other certificates', async () => {
      const old = { revoked: [leaf], ...times['out of date']() };
      for (const options of [
        { by: stranger, issuer: middle },
        { by: middle, extensions: [issuingDistributionPoint(SCOPE_FLAGS.authorities)] },
        { by: middle, extensions: [issuingDistributionPoint(distributionPointName('http://ca.example/part-2.crl'))] },
      ]) {
        lists = newLists();
        serve(OF_MIDDLE, { ...options, ...old });
        expect(await check('if-available')).to.match(/^if-available: revocation_unavailable: signer/);
      }
    });

    it('rejects a signer that the last copy lists although it is outdated and no newer copy is available', async () => {
      serve(OF_MIDDLE, { by: middle, revoked: [leaf] });
      expect(await check('if-available')).to.include('certificate_revoked');
      clock.time += 25 * HOUR;
      served.set(OF_MIDDLE, new RemoteError('unreachable', ''));
      serve(OF_ROOT, { by: root });
      expect(await check('if-available')).to.match(/^certificate_revoked: signer: keyCompromise/);
      clock.time += 30_000;
      serve(OF_MIDDLE, { by: middle });
      expect(await check('if-available'), 'a newer list without it').to.include('signer: not on');
    });

    it('uses the next address if the list at the first one is outdated and names other certificates', async () => {
      const signer = await certify({ name: 'Two', by: middle, crlUrls: [OF_MIDDLE, 'http://ca.example/2.crl'] });
      serve(OF_MIDDLE, { by: middle, ...times['out of date']() });
      serve('http://ca.example/2.crl', { by: middle });
      const chain = [signer, middle];
      expect(await check('required', { chain })).to.include('signer: not on http://ca.example/2.crl');
      serve('http://ca.example/2.crl', { by: middle, revoked: [signer] });
      lists = newLists();
      expect(await check('required', { chain })).to.include('certificate_revoked');
    });

    it('fetches the list again after half a minute, not before, and reports it as failing', async () => {
      serve(OF_MIDDLE, { by: middle, revoked: [leaf], ...times['out of date']() });
      await check();
      await check();
      expect(remote.calls).to.have.length(2);
      const [failing] = lists.stats('acme').failing;
      expect(failing).to.deep.include({ uri: OF_MIDDLE, retriedAt: at(30_000) });
      expect(failing?.reason).to.include('the list is out of date');
      clock.time += 30_000;
      serve(OF_MIDDLE, { by: middle });
      expect(await check()).to.include('required: signer: not on');
      expect(lists.stats('acme').failing).to.deep.equal([]);
    });

    it('accepts a correct list after one from the future', async () => {
      serve(OF_MIDDLE, { by: middle, ...times['in the future']() });
      expect(await check()).to.include('in the future');
      clock.time += 30_000;
      serve(OF_MIDDLE, { by: middle });
      expect(await check()).to.include('required: signer: not on');
    });
  });

  const useless: Readonly<Record<string, [RegExp, () => Partial<CrlOptions> | Buffer | RemoteError | number]>> = {
    'signed by another key': [/signature/, () => ({ by: stranger, issuer: middle })],
    'changed after it was signed': [
      /signature|cannot be used/,
      () => ({ bend: (bytes) => Buffer.from(bytes.map((byte, i) => (i === bytes.length - 1 ? byte ^ 1 : byte))) }),
    ],
    'of another issuer, under its own key': [/signature/, () => ({ by: root })],
    'under the name of another issuer': [/another issuer/, () => ({ issuer: root })],
    'signed by another key of the issuer': [
      /another key/,
      () => ({ extensions: [extension('551d23', Buffer.from('30048002aabb', 'hex'))] }),
    ],
    'out of date': [/out of date/, () => ({ thisUpdate: at(-2 * HOUR), nextUpdate: at(0) })],
    'in the future': [/in the future/, () => ({ thisUpdate: at(61_000) })],
    'without an end': [/nextUpdate/, () => ({ nextUpdate: null })],
    'ended before it began': [/nextUpdate/, () => ({ nextUpdate: at(-2 * HOUR) })],
    'of changes alone': [/a delta list/, () => ({ extensions: [crlNumber(2), deltaIndicator()] })],
    'of several issuers': [/the list is indirect/, () => ({ extensions: [issuingDistributionPoint(SCOPE_FLAGS.indirect)] })],
    'of some reasons': [/some reasons/, () => ({ extensions: [issuingDistributionPoint(SCOPE_FLAGS.reasons)] })],
    'of authorities alone': [/about other certificates/, () => ({ extensions: [issuingDistributionPoint(SCOPE_FLAGS.authorities)] })],
    'for another distribution point': [
      /about other certificates/,
      () => ({ extensions: [issuingDistributionPoint(distributionPointName('http://ca.example/part-2.crl'))] }),
    ],
    'with a critical extension': [/critical 1\.2\.3/, () => ({ extensions: [extension('2a03', Buffer.from([5, 0]), true)] })],
    'with an entry of another issuer': [
      /critical entry/,
      () => ({ revoked: [{ serial: Buffer.from([1]), extensions: [extension('551d1d', Buffer.from([0x30, 0]), true)] }] }),
    ],
    'with bytes behind it': [/trailing/, () => ({ bend: (bytes) => Buffer.concat([bytes, Buffer.from([0])]) })],
    'no list at all': [/cannot be used/, () => Buffer.from('<html>')],
    'too large': [/too_large/, () => new RemoteError('too_large', '')],
    unreachable: [/unreachable/, () => new RemoteError('unreachable', '')],
    'elsewhere by now': [/redirected/, () => new RemoteError('redirected', '')],
    'at an address that may not be called': [/refused_address/, () => new RemoteError('refused_address', '')],
    absent: [/HTTP status 404/, () => 404],
  };
  for (const [what, [why, bend]] of Object.entries(useless)) {
    it(`is unavailable from a list that is ${what}`, async () => {
      const given = bend();
      if (given instanceof Buffer || given instanceof RemoteError || typeof given === 'number') {
        served.set(OF_MIDDLE, given);
      } else serve(OF_MIDDLE, { by: middle, ...given });
      const required = await check('required');
      expect(required)
        .to.match(/^revocation_unavailable: signer: /)
        .and.match(why);
      const available = await check('if-available');
      expect(available)
        .to.match(/^if-available: revocation_unavailable: signer: /)
        .and.match(why);
      expect(available).to.include('authority 1 above the signer: not on');
    });
  }

  it('is accepted from lists for the distribution point, or the kind of certificate', async () => {
    serve(OF_MIDDLE, { by: middle, extensions: [issuingDistributionPoint(distributionPointName(OF_MIDDLE), SCOPE_FLAGS.users)] });
    serve(OF_ROOT, { by: root, extensions: [issuingDistributionPoint(SCOPE_FLAGS.authorities)] });
    expect(await check()).to.include('required: signer: not on');
  });

  it('is accepted from a list that names the key of its issuer, or from any if the issuer has no key identifier', async () => {
    const signedBy = (keyId: string) => extension('551d23', Buffer.concat([Buffer.from('30168014', 'hex'), Buffer.from(keyId, 'hex')]));
    const keyId = '00112233445566778899aabbccddeeff00112233';
    for (const [named, authorityKeyId] of [[keyId, keyId], [null]] as const) {
      const by = await certify({ name: 'Named', ca: true, keyId: named });
      const signer = await certify({ name: 'Signer', by, crlUrls: [OF_MIDDLE], ...(authorityKeyId && { authorityKeyId }) });
      lists = newLists();
      serve(OF_MIDDLE, { by, extensions: [signedBy(keyId)] });
      expect(await check('required', { chain: [signer], anchor: by })).to.include('required: signer: not on');
    }
  });

  it('is accepted from an issuer without key usage', () => {
    const list = parseCrl(makeCrl({ by: root, thisUpdate: at(-HOUR), nextUpdate: at(HOUR) }));
    const issuer = parseCertificate(Buffer.from(root.certificate, 'base64'));
    if (issuer === undefined) throw new Error('unreadable');
    const { keyUsage: _, ...unlimited } = issuer;
    expect(findListProblem(list, unlimited)).to.equal(undefined);
  });

  it('is rejected from an issuer that may not sign lists', async () => {
    const mute = await certify({ name: 'Mute', ca: true, signsCrls: false });
    const signer = await certify({ name: 'Signer', by: mute, crlUrls: [OF_MIDDLE] });
    serve(OF_MIDDLE, { by: mute });
    expect(await check('required', { chain: [signer], anchor: mute })).to.include('may not sign lists');
  });

  describe('of a certificate that names', () => {
    const of = async (options: Partial<CertificateOptions>, mode: CertificateRevocation = 'required') =>
      check(mode, { chain: [await certify({ name: 'Other', by: root, ...options })] });

    it('no list, is unavailable', async () => {
      expect(await of({})).to.equal('revocation_unavailable: signer: it names no list');
      expect(await of({}, 'if-available')).to.include('it names no list');
    });

    it('OCSP alone, is unavailable if the responder does not answer', async () => {
      const ocsp = 'http://ocsp.example';
      expect(await of({ ocsp })).to.match(/revocation_unavailable: signer: http:\/\/ocsp.example\/ \(HTTP status 404\)/);
      expect(remote.calls).to.have.length(1);
      expect(await of({ ocsp, crlUrls: [OF_ROOT] }), 'lists come first').to.include('required: signer: not on');
      expect(remote.calls.map(({ url }) => url).slice(1)).to.deep.equal([OF_ROOT]);
    });

    it('no http address, is unavailable', async () => {
      expect(await of({ crlUrls: ['ldap://ca.example/cn=x'] })).to.include('no list with a usable address');
      expect(remote.calls).to.deep.equal([]);
    });

    it('nothing and is valid for at most a week, or is never revoked, needs no request', async () => {
      const week = { from: '2026-05-30T00:00:00Z', until: '2026-06-06T00:00:00Z' };
      expect(await of(week)).to.equal('required: signer: short-lived or never revoked');
      expect(await of({ neverRevoked: true })).to.equal('required: signer: short-lived or never revoked');
      expect(await of({ ...week, until: '2026-06-06T00:00:01Z' })).to.include('revocation_unavailable');
      expect(await of({ ...week, ocsp: 'http://ocsp.example' })).to.include('revocation_unavailable');
      const named = await certify({ name: 'Named', by: root, ...week, crlUrls: [OF_ROOT] });
      serve(OF_ROOT, { by: root, revoked: [named] });
      expect(await check('required', { chain: [named] })).to.include('certificate_revoked');
    });

    it('nothing and is an authority, is unavailable even if it is short-lived', async () => {
      const authority = await certify({ name: 'Brief', by: root, ca: true, neverRevoked: true });
      const signer = await certify({ name: 'Signer', by: authority, neverRevoked: true });
      expect(await check('required', { chain: [signer, authority] })).to.include('authority 1 above the signer: it names no list');
    });

    it('several lists, is determined by the first available one of at most three', async () => {
      const dead = ['http://a.example/', 'http://b.example/'];
      expect(await of({ crlUrls: [...dead, OF_ROOT] })).to.include(`signer: not on ${OF_ROOT}`);
      remote.calls.length = 0;
      expect(await of({ crlUrls: [...dead, 'http://c.example/?secret=1', OF_ROOT] })).to.match(/^revocation_unavailable: [^?]+$/);
      expect(remote.calls.map(({ url }) => url)).to.deep.equal(['http://c.example/?secret=1']);
    });
  });

  it('of a directly trusted certificate is not checked', async () => {
    expect(await check('required', { chain: [leaf], anchor: leaf })).to.equal('required: the certificate itself is trusted');
    expect(remote.calls).to.deep.equal([]);
  });

  it('is fetched once for 24 concurrent checks, and again after an hour', async () => {
    const outcomes = await Promise.all(Array.from({ length: 24 }, () => check()));
    expect(new Set(outcomes).size).to.equal(1);
    expect(remote.calls).to.have.length(2);
    clock.time += HOUR - 1;
    await check();
    expect(remote.calls).to.have.length(2);
    clock.time += 1;
    serve(OF_MIDDLE, { by: middle, revoked: [leaf] });
    expect(await check()).to.include('certificate_revoked');
    expect(remote.calls).to.have.length(4);
  });

  it('is fetched again when the list expires, even within the hour', async () => {
    serve(OF_MIDDLE, { by: middle, nextUpdate: at(60_000) });
    await check();
    clock.time += 60_000;
    expect(await check()).to.match(/^revocation_unavailable: signer: .*out of date/);
  });

  it('may come from a cached copy until it expires, and from no list that is older than the copy', async () => {
    await check();
    const [before, later] = [at(-2 * HOUR), at(48 * HOUR)];
    clock.time += HOUR;
    served.set(OF_MIDDLE, new RemoteError('unreachable', ''));
    expect(await check()).to.include('required: signer: not on');
    clock.time += 23 * HOUR;
    serve(OF_ROOT, { by: root });
    expect(await check()).to.include('revocation_unavailable: signer');
    clock.time += 30_000;
    serve(OF_MIDDLE, { by: middle, thisUpdate: before, nextUpdate: later });
    expect(await check()).to.include('older than the previous list');
  });

  it('is fetched again half a minute after a failure, not before', async () => {
    served.delete(OF_MIDDLE);
    await check();
    await check();
    expect(remote.calls).to.have.length(2);
    serve(OF_MIDDLE, { by: middle });
    clock.time += 30_000;
    expect(await check()).to.include('required: signer: not on');
  });

  it('is cached per tenant and issuer', async () => {
    await check();
    await check('required', { tenantId: 'beta' });
    expect(remote.calls).to.have.length(4);
    expect(lists.stats('beta').size).to.equal(2);
    eventBus.publish({ type: 'cache', tenantId: 'acme' as never, lists: 'revocation-lists' });
    expect([lists.stats('acme').size, lists.stats('beta').size]).to.deep.equal([0, 2]);
    const other = await certify({ name: 'Middle', ca: true });
    const signer = await certify({ name: 'Leaf', by: other, crlUrls: [OF_MIDDLE] });
    expect(await check('required', { chain: [signer], anchor: other })).to.include('signature');
  });
});
