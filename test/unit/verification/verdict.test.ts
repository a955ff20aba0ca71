import { webcrypto } from 'node:crypto';
import { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, X509CertificateGenerator } from '@peculiar/x509';
import { expect } from 'chai';
import sinon from 'sinon';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { NodeSignatures } from '../../../adapters/crypto/signatures.ts';
import { TenantConfiguration } from '../../../application/tenant-cache/tenant-configuration.ts';
import { thumbprintOf } from '../../../application/trust-lists/verify-trust-list.ts';
import { authorityOf } from '../../../application/verification/trusted-authorities.ts';
import { issuedAt, type OfflineContext, verifyOffline } from '../../../application/verification/verify-offline.ts';
import { type CompiledCredentialQuery, compileQuery } from '../../../domain/dcql/compile.ts';
import { DcqlQuery } from '../../../domain/dcql/query.ts';
import { parseCertificate } from '../../../domain/formats/der/certificate.ts';
import { redirectTranscript } from '../../../domain/formats/mdoc/session-transcript.ts';
import { encodeBase64url } from '../../../domain/shared/base64url.ts';
import type { Profile } from '../../../domain/shared/finding.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { Refusal, type RefusalReason } from '../../../domain/shared/refusal.ts';
import type { Period } from '../../../domain/trust-lists/service-history.ts';
import { certifiesIss, withoutUncertifiedIss } from '../../../domain/verification/presented-issuer.ts';
import { reportOf } from '../../../domain/verification/report.ts';
import { presentationAlgorithms } from '../../../domain/verification/request-object.ts';
import { type CheckedPresentation, decideVerdict } from '../../../domain/verification/verdict.ts';
import { presentMdoc } from '../../support/mdoc-maker.ts';
import { newKey } from '../../support/raw-wallet.ts';
import { type CertifiedKey, certify } from '../../support/test-certificates.ts';
import { ACME, type Changes, formOf, present, World } from './kit.ts';

const meta = { vct_values: ['urn:pid'] };
const format = 'dc+sd-jwt';
const ISSUER = { subject: 'CN=Issuer', fingerprint: 'f', anchor: 'a' };

const good = (queryId: string, signedHash: string): CheckedPresentation => ({
  ...{ queryId, index: 0, format, inputs: {}, accepted: true, values: { name: 'Erika' } },
  ...{ issuer: ISSUER, signedHash, confirmed: [] },
});
const bad = (queryId: string, index: number, reason: RefusalReason): CheckedPresentation => ({
  ...{ queryId, index, format, inputs: {}, accepted: false, reason, detail: 'why', invalidatesResponse: false },
});

describe('verdict on a response', () => {
  const query = compileQuery(
    DcqlQuery.parse({
      credentials: [
        { id: 'card', format, meta, multiple: true },
        { id: 'other', format, meta },
      ],
      credential_sets: [{ options: [['card']] }, { options: [['other']], required: false }],
    }),
  );

  it('omits an optional credential that was not sent', () => {
    const { good: isGood, credentials } = decideVerdict(query, [good('card', 'h')], []);
    expect(isGood).to.equal(true);
    expect(credentials).to.deep.equal([{ id: 'card', values: [{ name: 'Erika' }], issuer: [ISSUER] }]);
  });

  it('lists the reason of each rejected presentation, and no other credential', () => {
    const refused = [bad('card', 0, 'kb_signature'), bad('card', 1, 'credential_expired')];
    const { report, reasons } = decideVerdict(query, [...refused, bad('other', 0, 'nonce_mismatch')], []);
    expect(reasons).to.deep.equal([
      'card: kb_signature',
      'card: credential_expired',
      'other: nonce_mismatch',
      'missing credential_sets[0]',
    ]);
    const said = report.filter(({ result }) => result === 'failed').map(({ reason }) => reason);
    expect(said).to.deep.equal(['kb_signature', 'credential_expired', 'nonce_mismatch', 'missing credential_sets[0]']);
  });
});

describe('report on a presentation', () => {
  const rowsOf = (inputs: object, reason?: RefusalReason) =>
    reportOf({ queryId: 'card', index: 0, format, inputs }, reason === undefined ? undefined : { reason, detail: 'why' });
  const namesOf = (...given: Parameters<typeof rowsOf>) => rowsOf(...given).map(({ check }) => check);

  it('lists the revocation of certificates only if it was checked, or caused the rejection', () => {
    expect(namesOf({})).to.include('status').and.not.include('certificate revocation');
    expect(namesOf({ 'certificate revocation': 'a list' })).to.include('certificate revocation');
    expect(namesOf({}, 'certificate_revoked').at(-1)).to.equal('certificate revocation');
  });

  it('lists the checked input if it is known', () => {
    const [form, binding] = rowsOf({ form: 'a credential' });
    expect(form).to.deep.equal({
      ...{ id: 'card', index: 0, check: 'form', input: 'a credential', result: 'passed' },
      section: 'RFC 9901 section 4',
    });
    expect(binding).to.not.have.property('input');
  });
});

/** ARF 3.0 OIA_03: presentations are verified by agreed algorithms alone under the profile `eu`. */
describe('presentation signatures', () => {
  const ED25519 = { kty: 'OKP', crv: 'Ed25519', x: encodeBase64url(Buffer.alloc(32, 1)) };

  let world: World;
  beforeEach(async () => {
    world = await World.make();
    await world.configure({ redirectUri: 'https://shop.example/done' });
  });

  afterEach(() => sinon.restore());

  const under = (profile: Profile) => sinon.stub(TenantConfiguration.prototype, 'profile').get(() => profile);
  const reasonOf = async (changes: Changes): Promise<unknown> => {
    const asked = await world.request();
    const form = await formOf(asked, { card: [present(world, asked, changes)] });
    await world.receiveResponse.execute(ACME, asked.publicId, form).catch(() => {});
    const { outcome } = await world.session(asked.session.id);
    const reasons = (outcome?.report ?? []).map((entry) => (entry as JsonObject)['reason']);
    return reasons.find((reason) => reason !== undefined);
  };

  it('by Ed25519 are verified, but not under `eu`', async () => {
    const byEdwards = { visible: { cnf: { jwk: ED25519 } }, kbHeader: { alg: 'EdDSA' } };
    expect(await reasonOf(byEdwards), 'nobody made it with that key').to.equal('kb_signature');
    under('eu');
    expect(await reasonOf(byEdwards)).to.equal('kb_alg');
    expect(await reasonOf({ header: { alg: 'EdDSA' } })).to.equal('issuer_alg');
  });

  it('are requested with agreed algorithms under `eu`, in both formats', async () => {
    const published = async () => {
      const { claims } = await world.request();
      return (claims['client_metadata'] as JsonObject)['vp_formats_supported'];
    };
    expect(JSON.stringify(await published())).to.include('Ed25519');
    under('eu');
    const names = ['ES256', 'ES384', 'ES512'];
    const numbers = [-7, -9, -35, -51, -36, -52];
    expect(await published()).to.deep.equal({
      'dc+sd-jwt': { 'sd-jwt_alg_values': names, 'kb-jwt_alg_values': names },
      mso_mdoc: { issuerauth_alg_values: numbers, deviceauth_alg_values: numbers },
    });
  });

  it('of an mdoc follow the same algorithms', () => {
    expect(presentationAlgorithms(false).cose).to.include('EdDSA');
    expect(presentationAlgorithms(true).cose).to.deep.equal(['ES256', 'ES384', 'ES512']);
  });
});

const P256 = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** ARF 3.0 OIA_03: under the profile `eu` certificates are held to agreed algorithms, too. */
describe('certificates of presentations, by agreed algorithms', () => {
  const NOW = new Date('2026-06-01T00:00:00Z');
  const ED25519 = { name: 'Ed25519' } as const;
  type Algorithm = typeof P256 | typeof ED25519;

  /** A leaf below its authority, DER in standard base64. */
  async function pathOf(ofLeaf: Algorithm, ofAuthority: Algorithm) {
    const make = async (algorithm: Algorithm) =>
      (await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify'])) as webcrypto.CryptoKeyPair;
    const [leaf, authority] = [await make(ofLeaf), await make(ofAuthority)];
    const common = {
      issuer: 'CN=Authority',
      notBefore: new Date('2026-01-01'),
      notAfter: new Date('2027-01-01'),
      signingKey: authority.privateKey,
      signingAlgorithm: ofAuthority,
    };
    const root = await X509CertificateGenerator.create({
      ...{ ...common, serialNumber: '01', subject: 'CN=Authority', publicKey: authority.publicKey },
      extensions: [new BasicConstraintsExtension(true, 0, true), new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true)],
    });
    const below = await X509CertificateGenerator.create({
      ...{ ...common, serialNumber: '02', subject: 'CN=Issuer', publicKey: leaf.publicKey },
      extensions: [new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true)],
    });
    const base64 = (raw: ArrayBuffer) => Buffer.from(raw).toString('base64');
    return { chain: [base64(below.rawData)], anchors: [{ certificate: base64(root.rawData) }] };
  }

  const certificates = new NodeCertificates();
  for (const [what, leaf, authority, isAgreed] of [
    ['of ECDSA', P256, P256, true],
    ['whose key is of Ed25519', ED25519, P256, false],
    ['whose authority signs by Ed25519', P256, ED25519, false],
  ] as const) {
    it(`are accepted ${isAgreed ? 'always' : 'only without a profile'}: ${what}`, async () => {
      const { chain, anchors } = await pathOf(leaf, authority);
      const under = (agreedOnly: boolean) => certificates.verifyChain(chain, anchors, NOW, { purpose: 'SD-JWT VC', agreedOnly });
      expect(under(false).trusted).to.equal(true);
      const verdict = under(true);
      expect(verdict.trusted).to.equal(isAgreed);
      if (!verdict.trusted) expect(verdict).to.deep.include({ reason: 'certificate_profile' });
      expect(under(false).trusted, 'each question by itself').to.equal(true);
    });
  }
});

const TYPE = 'org.example.badge';
const HOUR = 3_600_000;

describe('time of issuance', () => {
  const NOW = new Date('2026-06-01T12:00:00Z');

  const ports = { signatures: new NodeSignatures(), certificates: new NodeCertificates() };
  let root: CertifiedKey;
  let signer: CertifiedKey;

  before(async () => {
    root = await certify({ name: 'Root', ca: true });
    signer = await certify({ name: 'Signer', by: root });
  });

  /** Of an mdoc that was signed a day ago, where its service stood as it has to in these periods, hours ago. */
  const opened = (periods: readonly (readonly [from: number, until: number])[] | undefined, algorithms = presentationAlgorithms(true)) => {
    const transcript = redirectTranscript({
      ...{ clientId: 'x509_hash:abc', nonce: 'n', encryptionKey: undefined },
      responseUri: 'https://verifier.example/response',
    });
    const ago = (hours: number) => new Date(NOW.getTime() - hours * HOUR);
    const dated = new Map<string, readonly Period[]>(
      periods === undefined
        ? []
        : [[thumbprintOf(root.certificate), periods.map(([from, until]) => ({ from: ago(from), until: ago(until) }))]],
    );
    const withFormer = [{ certificate: root.certificate }];
    const opening = {
      algorithms,
      ...{ request: { nonce: 'n' }, haip: false, now: NOW, requestedAt: NOW, mdlProfile: undefined },
      trust: { ...{ anchors: [], withFormer, dated, listedAnchors: new Map(), lists: [], missing: [] } },
      binding: { transcripts: () => [transcript] },
    } as unknown as OfflineContext;
    const query = { id: 'q', format: 'mso_mdoc', types: new Set([TYPE]), holderBindingRequired: true };
    const text = presentMdoc({
      ...{ holder: newKey(), docType: TYPE, elements: { [TYPE]: { name: 'Ada' } }, transcript },
      issuer: { key: signer as never, chain: [signer.certificate] },
      now: NOW.getTime() / 1000,
    });
    try {
      verifyOffline(ports, opening, query as unknown as CompiledCredentialQuery, text);
      return 'accepted';
    } catch (error) {
      if (error instanceof Refusal) return error.message;
      throw error;
    }
  };

  it('of an mdoc is the time of its signature', () => {
    expect(opened([[48, 12]])).to.equal('accepted');
    expect(opened([[24, 23]]), 'from the beginning of a period').to.equal('accepted');
    expect(opened(undefined), 'where no time counts').to.equal('accepted');
  });
  it('is unavailable for an mdoc that is signed by an unsupported algorithm', () => {
    const others = { ...presentationAlgorithms(true), cose: ['ES384' as const] };
    expect(opened(undefined, others)).to.include('issuer_alg');
  });
  it('of an mdoc outside of all periods makes its issuer untrusted', () => {
    const refused = /^untrusted_chain: the service of its issuer was not approved when it was issued/;
    for (const periods of [[[48, 24]], [[23, 0]], []] as [number, number][][]) {
      expect(opened(periods), JSON.stringify(periods)).to.match(refused);
    }
  });
  it('of an SD-JWT VC is its iat, if it is valid', () => {
    expect(issuedAt({ iat: 1_700_000_000 })).to.deep.equal(new Date('2023-11-14T22:13:20Z'));
    for (const iat of ['1700000000', null, Number.NaN, 1e18, undefined])
      expect(issuedAt({ iat } as never), String(iat)).to.equal(undefined);
  });
});

const NAMES = ['URI:https://issuer.example/a', 'URI:urn:issuer:1', 'DNS:host.example', 'DNS:localhost'];

describe('iss of a presented credential', () => {
  for (const iss of [
    'https://issuer.example/a',
    'urn:issuer:1',
    'https://host.example',
    'https://host.example/tenant',
    'https://HOST.example:8443/x',
    'http://localhost:3000/acme',
  ]) {
    it(`is certified: ${iss}`, () => expect(certifiesIss(NAMES, iss)).to.equal(true));
  }

  for (const iss of [
    'https://issuer.example',
    'https://issuer.example/a/',
    'https://issuer.example/b',
    'https://sub.host.example',
    'https://host.example.evil.example',
    'https://evil.example/?host.example',
    'https://host.example@evil.example',
    'ftp://host.example',
    'host.example',
    'DNS:host.example',
    'urn:issuer:2',
    '',
    undefined,
    ['https://host.example'],
  ]) {
    it(`is not certified: ${JSON.stringify(iss)}`, () => expect(certifiesIss(NAMES, iss)).to.equal(false));
  }

  it('is kept if it is certified, and removed otherwise', () => {
    const told = (iss: string) => ({ ...withoutUncertifiedIss({ iss, name: 'Erika' }, NAMES) });
    expect(told('urn:issuer:1')).to.deep.equal({ iss: 'urn:issuer:1', name: 'Erika' });
    expect(told('urn:issuer:2')).to.deep.equal({ name: 'Erika' });
  });
});

const CLAIMED = '00112233445566778899aabbccddeeff00112233';

const read = ({ certificate }: CertifiedKey) => parseCertificate(Buffer.from(certificate, 'base64'));
const keyIdOf = (one: CertifiedKey) => read(one)?.subjectKeyId ?? '';
const encoded = (keyId: string) => Buffer.from(keyId, 'hex').toString('base64url');

describe('required key identifier', () => {
  const NOW = new Date('2027-01-15T08:00:00Z');

  /** Which of the key identifiers that are asked for belong to who vouches for the chain. */
  const met = (anchors: readonly CertifiedKey[], chain: readonly CertifiedKey[], ...asked: readonly string[]) => {
    const trust = { anchors, ...{ withFormer: [], dated: new Map() }, listedAnchors: new Map(), lists: [], missing: [] };
    const trusted = { chain: chain.map(({ certificate }) => certificate), purpose: 'SD-JWT VC' } as const;
    const demanded = [{ type: 'aki', values: new Set(asked) }];
    return authorityOf(new NodeCertificates(), trust, demanded, trusted, NOW).authorityKeyIds;
  };

  let root: CertifiedKey;
  let middle: CertifiedKey;
  let leaf: CertifiedKey;
  before(async () => {
    root = await certify({ name: 'Root', ca: true });
    middle = await certify({ name: 'Middle', by: root, ca: true });
    leaf = await certify({ name: 'Leaf', by: middle });
  });

  it('is that of the anchor of the chain', () => {
    expect(met([root], [leaf, middle], keyIdOf(root))).to.deep.equal([keyIdOf(root)]);
    expect(met([root, middle], [leaf, middle], keyIdOf(middle), 'x')).to.deep.equal([keyIdOf(middle)]);
    expect(met([root, middle], [leaf, middle], keyIdOf(root))).to.deep.equal([keyIdOf(root)]);
  });

  it('is that of an authority between the signer and the anchor', () => {
    expect(met([root], [leaf, middle], keyIdOf(middle))).to.deep.equal([keyIdOf(middle)]);
    expect(met([root], [leaf, middle], keyIdOf(leaf))).to.deep.equal([]);
    expect(met([middle], [leaf, middle, root], keyIdOf(root))).to.deep.equal([]);
  });

  it('is not that of an authority outside of the validated chain, nor of an anchor of other chains', async () => {
    const apart = await certify({ name: 'Apart', ca: true });
    expect(met([root], [leaf, middle, apart], keyIdOf(apart))).to.deep.equal([]);
    const other = await certify({ name: 'Other', ca: true });
    expect(met([root, other], [leaf, middle], keyIdOf(other))).to.deep.equal([]);
  });

  it('is not the one that an intermediate certificate claims', async () => {
    const other = await certify({ name: 'Other', ca: true });
    const keyId = Buffer.from(keyIdOf(other), 'base64url').toString('hex');
    const pretender = await certify({ name: 'Pretender', by: root, ca: true, keyId });
    const below = await certify({ name: 'Below', by: pretender, authorityKeyId: keyId });
    expect(met([root, other], [below, pretender], keyIdOf(other))).to.deep.equal([]);
  });

  it('is the hash of the key of an anchor without a key identifier', async () => {
    const bare = await certify({ name: 'Bare', ca: true, keyId: null });
    const below = await certify({ name: 'Below', by: bare });
    const made = read(bare)?.keyHash ?? '';
    expect(met([bare], [below], made)).to.deep.equal([made]);
    // What others would write as the identifier of its key.
    expect(read(below)?.authorityKeyId).to.equal(made);
  });

  it('is that of a certificate that is trusted directly, and not of the issuer that it names', async () => {
    const own = await certify({ name: 'Own', authorityKeyId: CLAIMED });
    expect(met([own], [own], keyIdOf(own))).to.deep.equal([keyIdOf(own)]);
    expect(met([own], [own], encoded(CLAIMED))).to.deep.equal([]);
  });

  it('belongs only to the key from which it was computed when several keys claim it', async () => {
    const keyId = Buffer.from(keyIdOf(root), 'base64url').toString('hex');
    const thief = await certify({ name: 'Thief', ca: true, keyId });
    const stolen = await certify({ name: 'Stolen', by: thief, authorityKeyId: keyId });
    expect(met([thief, root], [stolen], keyIdOf(root))).to.deep.equal([]);
    expect(met([thief, root], [leaf, middle], keyIdOf(root))).to.deep.equal([keyIdOf(root)]);
    const claimants = [await certify({ name: 'One', ca: true, keyId: CLAIMED }), await certify({ name: 'Two', ca: true, keyId: CLAIMED })];
    for (const by of claimants) {
      const below = await certify({ name: 'Below', by, authorityKeyId: CLAIMED });
      expect(met(claimants, [below], encoded(CLAIMED))).to.deep.equal([]);
      expect(met([by], [below], encoded(CLAIMED))).to.deep.equal([encoded(CLAIMED)]);
    }
  });
});
