import { webcrypto, X509Certificate } from 'node:crypto';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  cryptoProvider,
  Extension,
  type X509Certificate as GeneratedCertificate,
  type JsonNameParams,
  KeyUsageFlags,
  KeyUsagesExtension,
  Name,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { expect } from 'chai';
import fc from 'fast-check';
import sinon from 'sinon';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { parseCertificate } from '../../../domain/formats/der/certificate.ts';
import { parseTime } from '../../../domain/formats/der/time.ts';
import { parseDocumentSigner } from '../../../domain/formats/mdoc/document-signer.ts';
import type { CertificatePurpose } from '../../../domain/keys/certificate-purpose.ts';
import { type CertifiedKey, certify, READER, UNREADABLE_TIMES, WEB_SERVER } from '../../support/test-certificates.ts';

const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
const NOW = new Date('2027-01-15T08:00:00Z');
const SIGN_CERTIFICATES = KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign;

type Issued = { readonly certificate: GeneratedCertificate; readonly keys: CryptoKeyPair };
type CryptoKeyPair = Awaited<ReturnType<typeof makeKeys>>;
type Options = {
  readonly name: string;
  readonly by?: Issued;
  /** The issuer field, if it is not written as `by` writes its subject. */
  readonly issuer?: JsonNameParams;
  readonly ca?: boolean;
  readonly pathLength?: number;
  readonly usage?: number;
  readonly from?: string;
  readonly until?: string;
  /** False: its basic constraints are not marked critical. */
  readonly critical?: boolean;
  readonly extra?: readonly Extension[];
  readonly keys?: CryptoKeyPair;
};

function makeKeys() {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
}

/** A certificate that is right in every respect that `options` does not change. */
async function make(options: Options): Promise<Issued> {
  const { name, by, ca = false, pathLength, extra = [] } = options;
  const { usage = ca ? SIGN_CERTIFICATES : KeyUsageFlags.digitalSignature } = options;
  const keys = options.keys ?? (await makeKeys());
  const certificate = await X509CertificateGenerator.create({
    subject: name,
    issuer: options.issuer === undefined ? (by?.certificate.subject ?? name) : new Name(options.issuer),
    notBefore: new Date(options.from ?? '2026-01-01T00:00:00Z'),
    notAfter: new Date(options.until ?? '2030-01-01T00:00:00Z'),
    publicKey: keys.publicKey,
    signingKey: (by?.keys ?? keys).privateKey,
    signingAlgorithm: ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(ca, pathLength, options.critical ?? true),
      new KeyUsagesExtension(usage, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create((by?.keys ?? keys).publicKey),
      ...extra,
    ],
  });
  return { certificate, keys };
}

function base64(issued: Issued): string {
  return Buffer.from(issued.certificate.rawData).toString('base64');
}

describe('certificate path validation', () => {
  function judge(chain: readonly Issued[], anchors: readonly Issued[], now = NOW, haip = false): string {
    const verdict = new NodeCertificates().verifyChain(
      chain.map(base64),
      anchors.map((anchor) => ({ certificate: base64(anchor) })),
      now,
      { purpose: 'SD-JWT VC', haip },
    );
    return verdict.trusted ? 'trusted' : verdict.reason;
  }

  let root: Issued;
  let intermediate: Issued;
  let leaf: Issued;

  before(async () => {
    cryptoProvider.set(webcrypto);
    root = await make({ name: 'CN=Root', ca: true });
    intermediate = await make({ name: 'CN=Middle', by: root, ca: true, pathLength: 0 });
    leaf = await make({ name: 'CN=Signer\\, Inc.,O=Org,C=DE', by: intermediate });
  });

  it('trusts a path to a configured CA', () => {
    expect(judge([leaf, intermediate], [root])).to.equal('trusted');
    expect(judge([leaf], [intermediate])).to.equal('trusted');
    expect(judge([leaf, intermediate], [intermediate])).to.equal('trusted');
    expect(judge([leaf, intermediate], [intermediate], NOW, true)).to.equal('x5c_contains_anchor');
  });

  it('returns key, subject and anchor', () => {
    const verdict = new NodeCertificates().verifyChain([base64(leaf), base64(intermediate)], [{ certificate: base64(root) }], NOW, {
      purpose: 'SD-JWT VC',
    });
    const read = (issued: Issued) => parseCertificate(Buffer.from(issued.certificate.rawData));
    expect(verdict).to.deep.equal({
      trusted: true,
      key: read(leaf)?.publicJwk,
      anchor: read(root)?.hash,
      subject: read(leaf)?.subjectText,
      fingerprint: read(leaf)?.hash,
      names: [],
      anchorCertificate: base64(root),
      below: 2,
    });
    expect(read(leaf)?.subjectText).to.contain('Signer\\, Inc.');
  });

  it('rejects a path without an anchor, in the wrong order, with duplicates or empty', () => {
    expect(judge([leaf, intermediate], [])).to.equal('untrusted_chain');
    expect(judge([leaf], [root])).to.equal('untrusted_chain');
    expect(judge([intermediate, leaf], [root])).to.equal('certificate_profile');
    expect(judge([leaf, leaf, intermediate], [root])).to.equal('untrusted_chain');
    expect(judge([], [root])).to.equal('issuer_key_unresolved');
  });

  it('rejects an anchor as leaf', () => {
    expect(judge([root], [root])).to.equal('untrusted_chain');
    expect(judge([intermediate], [intermediate])).to.equal('untrusted_chain');
  });

  it('accepts a pinned end-entity certificate only as itself', async () => {
    const alone = await make({ name: 'CN=Alone' });
    const below = await make({ name: 'CN=Below', by: leaf });
    expect(judge([alone], [alone])).to.equal('trusted');
    expect(judge([alone], [alone], NOW, true)).to.equal('certificate_profile');
    expect(judge([leaf], [leaf])).to.equal('trusted');
    expect(judge([leaf], [leaf], new Date('2031-01-01'))).to.equal('certificate_expired');
    expect(judge([below], [leaf])).to.equal('untrusted_chain');
    expect(judge([below, leaf], [leaf])).to.equal('untrusted_chain');
    expect(judge([below, leaf, intermediate], [root])).to.equal('untrusted_chain');
  });

  it('rejects an anchor of the same name with another key', async () => {
    const impostor = await make({ name: 'CN=Middle', ca: true });
    expect(judge([leaf], [impostor])).to.equal('untrusted_chain');
    expect(judge([leaf], [impostor, intermediate])).to.equal('trusted');
  });

  // RFC 5280 sections 6.1.3 and 7.1
  const issuerNames: [string, JsonNameParams, string][] = [
    ['as a PrintableString', [{ CN: [{ printableString: 'Root' }] }], 'trusted'],
    ['as a UTF8String', [{ CN: [{ utf8String: 'Root' }] }], 'trusted'],
    ['as a BMPString', [{ CN: [{ bmpString: 'Root' }] }], 'trusted'],
    ['in other case and white space', [{ CN: [{ utf8String: '  ROOT ' }] }], 'trusted'],
    ['with another word', [{ CN: [{ utf8String: 'Root 2' }] }], 'untrusted_chain'],
    ['with another attribute', [{ CN: ['Root'] }, { O: ['Org'] }], 'untrusted_chain'],
    ['as another attribute', [{ O: ['Root'] }], 'untrusted_chain'],
  ];
  for (const [how, issuer, expected] of issuerNames) {
    it(`is ${expected} if a certificate writes the name of its issuer ${how}`, async () => {
      const below = await make({ name: 'CN=Below', by: root, issuer });
      expect(judge([below], [root])).to.equal(expected);
      const middle = await make({ name: 'CN=Between', by: root, issuer, ca: true });
      expect(judge([await make({ name: 'CN=Lowest', by: middle }), middle], [root])).to.equal(expected);
    });
  }

  it('applies the path length constraint', async () => {
    const deeper = await make({ name: 'CN=Deeper', by: intermediate, ca: true });
    const low = await make({ name: 'CN=Low', by: deeper });
    expect(judge([low, deeper, intermediate], [root])).to.equal('untrusted_chain');
  });

  it('requires critical basic constraints of an intermediate, but not of an anchor', async () => {
    const lax = await make({ name: 'CN=Lax', by: root, ca: true, critical: false });
    const under = await make({ name: 'CN=Under', by: lax });
    expect(judge([under, lax], [root])).to.equal('untrusted_chain');
    expect(judge([under], [lax])).to.equal('trusted');
  });

  it('requires key usages for each use', async () => {
    const mute = await make({ name: 'CN=Mute', by: root, ca: true, usage: KeyUsageFlags.cRLSign });
    const under = await make({ name: 'CN=Under', by: mute });
    expect(judge([under, mute], [root])).to.equal('untrusted_chain');
    const encipher = await make({ name: 'CN=E', by: root, usage: KeyUsageFlags.keyAgreement });
    expect(judge([encipher], [root])).to.equal('certificate_profile');
    const authority = await make({ name: 'CN=A', by: root, ca: true });
    expect(judge([authority], [root])).to.equal('certificate_profile');
  });

  it('rejects unknown critical extensions and name constraints', async () => {
    const critical = await make({ name: 'CN=X', by: root, extra: [new Extension('1.2.3.4', true, Buffer.of(5, 0))] });
    const harmless = await make({ name: 'CN=X', by: root, extra: [new Extension('1.2.3.4', false, Buffer.of(5, 0))] });
    expect(judge([critical], [root])).to.equal('certificate_profile');
    expect(judge([harmless], [root])).to.equal('trusted');
    const extra = [new Extension('2.5.29.30', false, Buffer.of(0x30, 0))];
    const narrow = await make({ name: 'CN=Narrow', by: root, ca: true, extra });
    const inside = await make({ name: 'CN=In', by: narrow });
    expect(judge([inside, narrow], [root])).to.equal('certificate_profile');
  });

  it('checks every validity period on every call, cached or not', async () => {
    const short = await make({ name: 'CN=Short', by: root, ca: true, until: '2027-06-01T00:00:00Z' });
    const under = await make({ name: 'CN=Under', by: short, from: '2027-01-01T00:00:00Z' });
    const certificates = new NodeCertificates();
    const anchors = [{ certificate: base64(root) }];
    const at = (time: string) => {
      const verdict = certificates.verifyChain([base64(under), base64(short)], anchors, new Date(time), { purpose: 'SD-JWT VC' });
      return verdict.trusted ? 'trusted' : verdict.reason;
    };
    expect(at('2027-01-15T00:00:00Z')).to.equal('trusted');
    expect(at('2026-12-31T23:58:59Z')).to.equal('certificate_expired');
    expect(at('2026-12-31T23:59:30Z')).to.equal('trusted');
    expect(at('2027-06-01T00:00:59Z')).to.equal('trusted');
    expect(at('2027-06-01T00:01:01Z')).to.equal('certificate_expired');
    expect(at('2027-05-31T23:59:59Z')).to.equal('trusted');
  });

  it('rejects a certificate that is too long', async () => {
    const padding = new Extension('1.2.3.4', false, new Uint8Array(20_000));
    const padded = await make({ name: 'CN=Padded', by: intermediate, extra: [padding] });
    expect(judge([padded, intermediate], [root])).to.equal('issuer_key_unresolved');
  });

  it('uses only anchors with a matching name, regardless of their number', async () => {
    const others = await Promise.all(Array.from({ length: 20 }, (_, at) => make({ name: `CN=O${at}`, ca: true })));
    const anchors = [root, ...others].map((issued) => ({ certificate: base64(issued) }));
    const rogue = await make({ name: 'CN=Rogue', ca: true });
    const certificates = new NodeCertificates();
    const verified = sinon.spy(X509Certificate.prototype, 'verify');
    try {
      for (const at of [1, 2, 3]) {
        const stranger = base64(await make({ name: `CN=S${at}`, by: rogue }));
        expect(certificates.verifyChain([stranger], anchors, NOW, { purpose: 'SD-JWT VC' }).trusted).to.equal(false);
      }
      expect(verified.callCount).to.equal(0);
      const known = base64(await make({ name: 'CN=Known', by: root }));
      expect(certificates.verifyChain([known], anchors, NOW, { purpose: 'SD-JWT VC' }).trusted).to.equal(true);
      expect(verified.callCount).to.equal(1);
    } finally {
      verified.restore();
    }
  });

  it('parses arbitrary and changed bytes without throwing', () => {
    const der = Buffer.from(leaf.certificate.rawData);
    fc.assert(
      fc.property(fc.nat({ max: der.length - 1 }), fc.nat({ max: 255 }), (at, byte) => {
        const changed = Buffer.from(der);
        changed[at] = byte;
        parseCertificate(changed);
        parseCertificate(changed.subarray(0, at));
        const verdict = new NodeCertificates().verifyChain([changed.toString('base64')], [{ certificate: base64(intermediate) }], NOW, {
          purpose: 'SD-JWT VC',
        });
        expect(verdict.trusted).to.equal(changed.equals(der));
      }),
      { numRuns: 100 },
    );
    fc.assert(fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => parseCertificate(Buffer.from(bytes)) === undefined));
  });
});

const ANY = '2.5.29.37.0';
const DOCUMENT_SIGNER = '1.0.18013.5.1.2';
const STATUS_SIGNER = '1.3.6.1.5.5.7.3.30';
const TRUST_LIST_SIGNER = '0.4.0.2231.3.0';

/** Extended key usages that are right for what is signed. */
const RIGHT: Readonly<Record<CertificatePurpose, readonly string[]>> = {
  'SD-JWT VC': [DOCUMENT_SIGNER, '1.0.23220.4.1.2'],
  mdoc: [DOCUMENT_SIGNER, '1.0.23220.4.1.2'],
  'wallet attestation': [],
  'status list': [STATUS_SIGNER],
  'trust list': [TRUST_LIST_SIGNER],
  'registration certificate': [],
  'OCSP answer': ['1.3.6.1.5.5.7.3.9'],
};
const KNOWN = [WEB_SERVER, READER, '1.3.6.1.5.5.7.3.4', ...new Set(Object.values(RIGHT).flat())];

describe('certificate purpose', () => {
  let root: CertifiedKey;
  const shared = new NodeCertificates();
  const judge = (purpose: CertificatePurpose, chain: readonly CertifiedKey[], anchors = [root]): string => {
    const texts = chain.map(({ certificate }) => certificate);
    const verdict = shared.verifyChain(texts, anchors, NOW, { purpose });
    return verdict.trusted ? 'trusted' : verdict.reason;
  };
  const leafFor = (purposes: readonly string[], critical = false, by = root) => certify({ name: 'Leaf', by, purposes, critical });

  before(async () => {
    root = await certify({ name: 'Root', ca: true });
  });

  for (const [name, right] of Object.entries(RIGHT)) {
    const purpose = name as CertificatePurpose;
    describe(`for a signed ${purpose}`, () => {
      it('is unrestricted without an extended key usage, and with an unrestricted one', async () => {
        expect(judge(purpose, [await leafFor([])])).to.equal('trusted');
        expect(judge(purpose, [await leafFor([ANY], true)])).to.equal('trusted');
        expect(judge(purpose, [await leafFor([WEB_SERVER, ANY])])).to.equal('trusted');
      });

      it('is determined by an extended key usage, critical or not', async () => {
        for (const usage of KNOWN) {
          const expected = right.includes(usage) ? 'trusted' : 'certificate_profile';
          for (const critical of [false, true]) {
            expect(judge(purpose, [await leafFor([usage], critical)]), usage).to.equal(expected);
            expect(judge(purpose, [await leafFor(['1.2.3.4', usage], critical)]), usage).to.equal(expected);
          }
        }
      });

      it('is restricted by authorities in between, not by the anchor', async () => {
        for (const usage of [...KNOWN, ANY]) {
          const isFine = usage === ANY || right.includes(usage);
          const middle = await certify({ name: 'Middle', by: root, ca: true, purposes: [usage], critical: true });
          const leaf = await leafFor(right.slice(0, 1), false, middle);
          expect(judge(purpose, [leaf, middle]), usage).to.equal(isFine ? 'trusted' : 'certificate_profile');
          expect(judge(purpose, [leaf], [middle]), usage).to.equal('trusted');
        }
      });

      it('is also checked for a directly trusted certificate', async () => {
        const own = await certify({ name: 'Own' });
        const web = await certify({ name: 'Web', purposes: [WEB_SERVER] });
        expect(judge(purpose, [own], [own])).to.equal('trusted');
        expect(judge(purpose, [web], [web])).to.equal('certificate_profile');
      });
    });
  }

  it('is cached for that purpose only', async () => {
    const leaf = await leafFor([STATUS_SIGNER]);
    for (const _ of [1, 2]) {
      expect(judge('status list', [leaf])).to.equal('trusted');
      expect(judge('SD-JWT VC', [leaf])).to.equal('certificate_profile');
      expect(judge('trust list', [leaf])).to.equal('certificate_profile');
    }
  });
});

const UTC_TIME = 0x17;
const GENERALIZED_TIME = 0x18;

const read = ({ certificate }: CertifiedKey) => parseCertificate(Buffer.from(certificate, 'base64'));

describe('certificate times', () => {
  function judge(chain: readonly CertifiedKey[], anchors: readonly CertifiedKey[]): string {
    const verdict = new NodeCertificates().verifyChain(
      chain.map(({ certificate }) => certificate),
      anchors,
      NOW,
      { purpose: 'SD-JWT VC' },
    );
    return verdict.trusted ? 'trusted' : verdict.reason;
  }

  const good: [number, string, string][] = [
    [UTC_TIME, '491231235959Z', '2049-12-31T23:59:59.000Z'],
    [UTC_TIME, '500101000000Z', '1950-01-01T00:00:00.000Z'],
    [UTC_TIME, '280229000000Z', '2028-02-29T00:00:00.000Z'],
    [GENERALIZED_TIME, '20500101000000Z', '2050-01-01T00:00:00.000Z'],
    // RFC 5280 section 4.1.2.5: of a certificate without a well-defined end
    [GENERALIZED_TIME, '99991231235959Z', '9999-12-31T23:59:59.000Z'],
  ];
  for (const [tag, text, time] of good) {
    it(`are parsed: ${text}`, () => {
      expect(parseTime({ tag, content: Buffer.from(text) }).toISOString()).to.equal(time);
    });
  }

  const bad: [number, string][] = [
    [UTC_TIME, '271399000000Z'],
    [UTC_TIME, '270230000000Z'],
    [UTC_TIME, '270229000000Z'],
    [UTC_TIME, '270228240000Z'],
    [UTC_TIME, '270228236000Z'],
    [UTC_TIME, '270228235960Z'],
    [UTC_TIME, '2702280000Z'],
    [UTC_TIME, '270228000000'],
    [UTC_TIME, '270228000000+0100'],
    [UTC_TIME, '20270228000000Z'],
    [UTC_TIME, 'aaaaaaaaaaaaZ'],
    [UTC_TIME, ''],
    [GENERALIZED_TIME, '270228000000Z'],
    [GENERALIZED_TIME, '20270228000000.5Z'],
    [GENERALIZED_TIME, '20270228000000'],
    [GENERALIZED_TIME, '20271399000000Z'],
    [0x0c, '270228000000Z'],
    [0x0c, '20270228000000Z'],
  ];
  for (const [tag, text] of bad) {
    it(`are rejected: "${text}" with the tag ${tag}`, () => {
      expect(() => parseTime({ tag, content: Buffer.from(text) })).to.throw('time');
    });
  }

  for (const [what, validity] of Object.entries(UNREADABLE_TIMES)) {
    it(`make the certificate invalid: ${what}`, async () => {
      const root = await certify({ name: 'Root', ca: true });
      const leaf = await certify({ name: 'Leaf', by: root, validity });
      expect(read(leaf)).to.equal(undefined);
      expect(judge([leaf], [root])).to.equal('issuer_key_unresolved');
      expect(judge([leaf], [leaf]), 'pinned itself').to.equal('issuer_key_unresolved');

      const middle = await certify({ name: 'Middle', by: root, ca: true, validity });
      const below = await certify({ name: 'Below', by: middle });
      expect(judge([below, middle], [root])).to.equal('issuer_key_unresolved');
      expect(judge([below], [middle]), 'as an anchor').to.equal('untrusted_chain');
    });
  }

  it('are those of the certificate when they can be parsed', async () => {
    const validity = { notBefore: '260101000000Z', notAfter: '280229123456Z' };
    const leaf = await certify({ name: 'Leaf', validity });
    expect(read(leaf)).to.deep.include({ notBefore: new Date('2026-01-01T00:00:00Z'), notAfter: new Date('2028-02-29T12:34:56Z') });
    expect(judge([leaf], [leaf])).to.equal('trusted');
  });

  it('are validated in the same way for signers of mdocs', async () => {
    const leaf = await certify({ name: 'Leaf', validity: { notAfter: '270230000000Z' } });
    expect(() => parseDocumentSigner(leaf.certificate)).to.throw('not a certificate');
  });
});
