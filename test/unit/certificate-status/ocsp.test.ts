import { sign } from 'node:crypto';
import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { InProcessEventBus } from '../../../adapters/dispatch/in-process/event-bus.ts';
import { OcspResponders } from '../../../application/certificate-status/ocsp-responders.ts';
import { parseCertificate } from '../../../domain/formats/der/certificate.ts';
import { Refusal } from '../../../domain/shared/refusal.ts';
import { isAuthorizedResponder } from '../../../domain/verification/certificate-revocation.ts';
import {
  certifyRsa,
  der,
  makeOcspResponse,
  nameParts,
  type OcspOptions,
  pkcs1,
  pss,
  rsaPair,
  type Signing,
} from '../../support/revocation-maker.ts';
import { type CertificateOptions, type CertifiedKey, certify } from '../../support/test-certificates.ts';
import { FakeRemote, SetClock } from '../verification/kit.ts';

const RESPONDER = 'http://ocsp.example/at';
const OCSP_SIGNING = '1.3.6.1.5.5.7.3.9';
const ecdsa = ({ privateKey }: CertifiedKey): Signing => ({
  algorithm: der(0x30, Buffer.from('06082a8648ce3d040302', 'hex')),
  sign: (data) => sign('sha256', data, privateKey),
});
const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe('OCSP responder', () => {
  let authority: CertifiedKey;
  let other: CertifiedKey;
  let leaf: CertifiedKey;
  let remote: FakeRemote;
  let clock: SetClock;
  let responders: OcspResponders;
  const certificates = new NodeCertificates();

  before(async () => {
    authority = await certify({ name: 'Authority', ca: true });
    other = await certify({ name: 'Other', ca: true });
    leaf = await certify({ name: 'Leaf', by: authority });
  });
  beforeEach(() => {
    remote = new FakeRemote();
    clock = new SetClock();
    responders = new OcspResponders({ remote, certificates, clock, eventBus: new InProcessEventBus() });
  });

  const at = (milliseconds: number) => new Date(clock.time + milliseconds);
  const serve = (changes: Partial<OcspOptions> = {}) => {
    const options = { about: leaf, issuer: authority, thisUpdate: at(-HOUR), nextUpdate: at(DAY), ...changes };
    const body = makeOcspResponse(options);
    remote.answer = () => ({ status: 200, contentType: 'application/ocsp-response', body });
  };
  const ask = async (tenantId = 'acme'): Promise<string> => {
    const { serial, issuer: issuerName } = nameParts(leaf.certificate);
    const subject = { serial, issuerName, issuer: authority.certificate };
    try {
      return (await responders.query(tenantId, RESPONDER, subject)).status;
    } catch (error) {
      if (error instanceof Refusal) return error.message;
      throw error;
    }
  };
  const responder = (changes: Partial<CertificateOptions> = {}) => certify(responderOptions(changes));
  const responderOptions = (changes: Partial<CertificateOptions> = {}): CertificateOptions => ({
    name: 'Responder',
    by: authority,
    purposes: [OCSP_SIGNING],
    from: at(-DAY).toISOString(),
    until: at(5 * DAY).toISOString(),
    ...changes,
  });

  it('reports good or revoked, and is queried once for concurrent checks, by tenant', async () => {
    serve();
    expect(new Set(await Promise.all(Array.from({ length: 24 }, () => ask())))).to.deep.equal(new Set(['good']));
    expect(remote.calls).to.have.length(1);
    expect(remote.calls[0]?.url).to.match(/^http:\/\/ocsp\.example\/at\/[A-Za-z0-9%]+$/);
    expect(await ask('other')).to.equal('good');
    expect(remote.calls).to.have.length(2);
    expect(remote.following, 'nobody else hears whose certificate it is').to.deep.equal([]);
    clock.time += 2 * HOUR;
    serve({ status: 'revoked' });
    expect(await ask(), 'within an hour').to.equal('revoked');
  });

  it('may be delegated by the issuer, but not by another issuer', async () => {
    const read = ({ certificate }: CertifiedKey) => {
      const known = parseCertificate(Buffer.from(certificate, 'base64'));
      if (known === undefined) throw new Error('unreadable');
      return known;
    };
    expect(isAuthorizedResponder(read(await responder()), read(authority))).to.equal(true);
    expect(isAuthorizedResponder(read(await responder()), read(other))).to.equal(false);
  });

  it('may omit the parameters of the hash algorithm', async () => {
    serve({ isTerse: true });
    expect(await ask()).to.equal('good');
  });

  it('may be certified for it by the issuer', async () => {
    serve({ by: await responder() });
    expect(await ask()).to.equal('good');
    clock.time += 2 * HOUR;
    serve({ by: await responder({ by: { ...authority, name: 'AUTHORITY' } }), status: 'revoked' });
    expect(await ask(), 'its issuer written in other case').to.equal('revoked');
  });

  for (const [what, signing] of Object.entries({ 'PKCS #1': pkcs1, 'RSASSA-PSS': pss })) {
    it(`may have an RSA key and sign with ${what}, and reports good or revoked`, async () => {
      const pair = rsaPair();
      const by = await certifyRsa(responderOptions(), { rsa: pair, signing: () => ecdsa(authority) });
      serve({ by, signing: signing(pair.privateKey) });
      expect(await ask()).to.equal('good');
      clock.time += 2 * HOUR;
      serve({ by, signing: signing(pair.privateKey), status: 'revoked' });
      expect(await ask()).to.equal('revoked');
      clock.time += 2 * HOUR;
      serve({ by, signing: signing(rsaPair().privateKey) });
      expect(await ask('other'), 'signed by another key').to.match(/unusable answer/);
    });
  }

  it('reports a revoked certificate even in an outdated answer', async () => {
    serve({ status: 'revoked', thisUpdate: at(-2 * DAY), nextUpdate: at(-DAY) });
    expect(await ask()).to.equal('revoked');
  });

  it('reports a revoked certificate while no newer answer is available, and is queried again after half a minute', async () => {
    serve({ status: 'revoked' });
    expect(await ask()).to.equal('revoked');
    clock.time += 2 * DAY;
    remote.answer = () => ({ status: 503, contentType: '', body: Buffer.alloc(0) });
    expect(await ask()).to.equal('revoked');
    serve({ status: 'unknown' });
    clock.time += 30_000;
    expect(await ask()).to.equal('revoked');
    clock.time += 30_000;
    serve();
    expect(await ask(), 'a newer answer').to.equal('good');
  });

  it('is queried once in half a minute while its answer is outdated', async () => {
    serve({ status: 'revoked', thisUpdate: at(-2 * DAY), nextUpdate: at(-DAY) });
    await ask();
    await ask();
    expect(remote.calls).to.have.length(1);
    clock.time += 30_000;
    await ask();
    expect(remote.calls).to.have.length(2);
  });

  const refused: Readonly<Record<string, [() => Promise<Partial<OcspOptions>> | Partial<OcspOptions>, RegExp]>> = {
    'does not know it': [() => ({ status: 'unknown' }), /does not know/],
    'answers about another': [() => ({ about: other }), /about other certificates/],
    'answers for another issuer': [() => ({ issuer: other, by: authority }), /about other certificates/],
    'signs with an unknown key': [() => ({ by: other }), /not authorized/],
    'is certified for nothing': [async () => ({ by: await responder({ purposes: [] }) }), /not authorized/],
    'is certified for another thing': [async () => ({ by: await responder({ purposes: ['1.3.6.1.5.5.7.3.1'] }) }), /not authorized/],
    'is certified by another': [async () => ({ by: await responder({ by: other }) }), /not authorized/],
    'lives long and says nothing of itself': [
      async () => ({ by: await responder({ until: at(300 * DAY).toISOString() }) }),
      /not authorized/,
    ],
    'has gone out of its time': [
      async () => ({ by: await responder({ from: at(-5 * DAY).toISOString(), until: at(-DAY).toISOString() }) }),
      /not authorized/,
    ],
    'answers from the past': [() => ({ thisUpdate: at(-2 * DAY), nextUpdate: at(-DAY) }), /out of date/],
    'answers long ago, without an end': [() => ({ thisUpdate: at(-DAY), nextUpdate: undefined }), /out of date/],
    'answers from the future': [() => ({ thisUpdate: at(DAY), nextUpdate: at(2 * DAY) }), /in the future/],
    'is busy': [() => ({ state: 3 }), /the responder returned an error/],
  };
  for (const [what, [make, reason]] of Object.entries(refused)) {
    it(`reports no status when it ${what}`, async () => {
      serve(await make());
      expect(await ask())
        .to.match(reason)
        .and.match(/^revocation_unavailable/);
    });
  }

  it('reports no status with changed bytes', async () => {
    const good = makeOcspResponse({ about: leaf, issuer: authority, thisUpdate: at(-HOUR), nextUpdate: at(DAY) });
    for (let index = 0; index < good.length; index += 1) {
      clock.time += 60_000;
      const body = Buffer.from(good);
      body[index] = (body[index] ?? 0) ^ 1;
      remote.answer = () => ({ status: 200, contentType: '', body });
      expect(await ask(), `byte ${index}`).to.match(/^revocation_unavailable/);
    }
  });
});
