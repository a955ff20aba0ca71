import { generateKeyPairSync, type KeyObject, webcrypto } from 'node:crypto';
import { Extension, X509CertificateGenerator } from '@peculiar/x509';
import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { extensionsOf, fieldsOf, keyIdentifierOf, parseCertificate, parseExtensionList } from '../../../domain/formats/der/certificate.ts';
import { CertificatePem } from '../../../domain/formats/der/certificate-pem.ts';
import { parseCrl } from '../../../domain/formats/der/crl.ts';
import { attributesOf, formatName, isSameName } from '../../../domain/formats/der/name.ts';
import { parseKeyHash } from '../../../domain/formats/der/public-key.ts';
import { DerError, parseElement, parseElements, parseOid, parseSequence } from '../../../domain/formats/der/reader.ts';
import { revocationSourcesOf } from '../../../domain/formats/der/revocation-sources.ts';
import { subjectLocation } from '../../../domain/formats/der/subject-location.ts';
import {
  certifyRsa,
  der,
  derTime,
  extension,
  makeCrl,
  pkcs1,
  pss,
  pssPair,
  type RsaCertified,
  rsaPair,
  type Signing,
} from '../../support/revocation-maker.ts';
import { type CertifiedKey, certify, forgeCertificate, pem } from '../../support/test-certificates.ts';

const hex = (text: string) => Buffer.from(text, 'hex');
const bytesOf = ({ certificate }: Pick<CertifiedKey, 'certificate'>) => Buffer.from(certificate, 'base64');

/** What is read of a certificate with these extensions. */
async function readWith(...extensions: Extension[]) {
  const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const made = await X509CertificateGenerator.create({
    ...{ subject: 'CN=A', issuer: 'CN=A', publicKey: keys.publicKey, signingKey: keys.privateKey },
    ...{ notBefore: new Date('2026-01-01'), notAfter: new Date('2027-01-01') },
    ...{ signingAlgorithm: algorithm, extensions },
  });
  return { whole: Buffer.from(made.rawData), read: parseCertificate(Buffer.from(made.rawData)) };
}

describe('certificate extensions', () => {
  const constraints = async (value: string) => (await readWith(new Extension('2.5.29.19', true, hex(value)))).read?.basicConstraints;

  it('define whether it may certify others, and the path length', async () => {
    expect(await constraints('30060101ff020105')).to.deep.equal({ critical: true, ca: true, pathLength: 5 });
    expect(await constraints('3000')).to.deep.equal({ critical: true, ca: false });
    expect(await constraints('3003010100'), 'an explicit no').to.deep.equal({ critical: true, ca: false });
    expect(await constraints('3003020105'), 'a length alone').to.deep.include({ ca: false });
  });

  it('define the key usage and the key identifiers', async () => {
    const { read } = await readWith(
      new Extension('2.5.29.15', true, hex('03020106')),
      new Extension('2.5.29.14', false, hex('0402aabb')),
      new Extension('2.5.29.35', false, hex('30078205aabbccddee')),
    );
    expect([...(read?.keyUsage ?? [])]).to.deep.equal([5, 6]);
    expect(read && keyIdentifierOf(read)).to.equal(hex('aabb').toString('base64url'));
    expect(read, 'a serial number is no key').to.not.have.property('authorityKeyId');
    const named = (await readWith(new Extension('2.5.29.35', false, hex('30078201078002aabb')))).read;
    expect(named?.authorityKeyId).to.equal(hex('aabb').toString('base64url'));
    expect([...(read?.criticalExtensions ?? [])]).to.deep.equal(['2.5.29.15']);
    const bare = (await readWith()).read;
    expect(bare).to.not.have.any.keys('keyUsage', 'basicConstraints', 'subjectKeyId', 'extendedKeyUsage');
    expect(bare && keyIdentifierOf(bare)).to.equal(bare?.keyHash);
  });

  for (const [what, value] of [
    ['without a purpose', '3000'],
    ['that are not object identifiers', '30030c0141'],
  ] as const) {
    it(`are rejected with extended key usage ${what}`, async () => {
      expect((await readWith(new Extension('2.5.29.37', false, hex(value)))).read).to.equal(undefined);
    });
  }

  it('must be unique', async () => {
    const twice = new Extension('1.2.3', false, hex('0500'));
    expect((await readWith(twice, twice)).read).to.equal(undefined);
    const list = (...extensions: Buffer[]) => parseElement(der(0xa3, der(0x30, ...extensions)));
    expect(() => parseExtensionList(list(extension('2a03', hex('00')), extension('2a03', hex('00'))))).to.throw(DerError, 'twice');
    const explicit = der(0x30, hex('06022a03'), hex('010100'), hex('0400'));
    expect(parseExtensionList(list(explicit)).get('1.2.3')?.critical, 'an explicit no').to.equal(false);
    expect(extensionsOf([]).size).to.equal(0);
  });

  it('include the extended key usage for signing credentials', async () => {
    const spki = ({ publicKey }: { readonly publicKey: KeyObject }) => publicKey.export({ format: 'der', type: 'spki' });
    const names = { subject: 'CN=A', issuer: 'CN=B' };
    const jwkOf = async (bytes: Buffer) => parseCertificate(bytesOf({ certificate: await forgeCertificate(names, bytes) }))?.publicJwk;
    expect(await jwkOf(spki(generateKeyPairSync('ed25519')))).to.include({ kty: 'OKP', crv: 'Ed25519' });
    expect(await jwkOf(spki(generateKeyPairSync('ec', { namedCurve: 'P-384' })))).to.include({ crv: 'P-384' });
    for (const type of ['rsa', 'rsa-pss'] as const) {
      const key = spki(generateKeyPairSync(type as 'rsa', { modulusLength: 2048 }));
      const read = parseCertificate(bytesOf({ certificate: await forgeCertificate(names, key) }));
      expect(read, type).to.not.equal(undefined);
      expect(read, type).to.not.have.property('publicJwk');
    }
  });

  it('require the same signature algorithm inside and outside', async () => {
    const { whole } = await readWith();
    const [signed, algorithm, signature] = parseSequence(whole).map((part) => part.encoded) as [Buffer, Buffer, Buffer];
    const other = der(0x30, hex('06082a8648ce3d040303'));
    expect(parseCertificate(der(0x30, signed, algorithm, signature))).to.not.equal(undefined);
    for (const parts of [[signed, other, signature], [signed, algorithm], [signed], [], [der(0x30), algorithm, signature]]) {
      expect(parseCertificate(der(0x30, ...parts))).to.equal(undefined);
    }
  });

  it('are also read from version 1, which is implicit', async () => {
    const [signed] = parseSequence((await readWith()).whole);
    const all = parseElements(signed?.content ?? Buffer.alloc(0)).map(({ encoded: whole }) => whole);
    const first = fieldsOf(parseElement(der(0x30, ...all.slice(1))));
    expect(first.map(({ encoded: whole }) => whole)).to.deep.equal(all.slice(2));
    expect(fieldsOf(parseElement(der(0x30, ...all))).map(({ encoded: whole }) => whole)).to.deep.equal(all.slice(2));
  });
});

describe('certificate key', () => {
  const info = (type: Buffer, parameters: Buffer, key: Buffer) => parseElement(der(0x30, der(0x30, type, parameters), key));
  const NULL = hex('0500');
  const MODULUS = Buffer.concat([hex('00ff'), Buffer.alloc(255, 1)]);
  const numbers = (...content: Buffer[]) => content.map((bytes) => der(0x02, bytes));
  const rsaOf = (...parts: Buffer[]) =>
    parseKeyHash(info(hex('06092a864886f70d010101'), NULL, der(0x03, Buffer.from([0]), der(0x30, ...parts))));
  const ecOf = (parameters: Buffer) => parseKeyHash(info(hex('06072a8648ce3d0201'), parameters, der(0x03, hex('0004'))));

  it('is hashed without the enclosing bit string', () => {
    expect(rsaOf(...numbers(MODULUS, hex('03')))).to.match(/^[\w-]{27}$/);
    expect(ecOf(hex('06082a8648ce3d030107'))).to.equal(ecOf(hex('06052b81040022')));
  });

  const wrong: Readonly<Record<string, () => unknown>> = {
    'is not there': () => parseKeyHash(undefined),
    'is not a bit string': () => parseKeyHash(info(hex('06072a8648ce3d0201'), hex('06052b81040022'), der(0x04, hex('0004')))),
    'has no algorithm': () => parseKeyHash(parseElement(der(0x30))),
    'has a curve that is written out': () => ecOf(der(0x30, hex('020101'))),
    'has a curve that is not said': () => ecOf(Buffer.alloc(0)),
    'has no numbers': () => rsaOf(),
    'has one number': () => rsaOf(...numbers(MODULUS)),
    'has three numbers': () => rsaOf(...numbers(MODULUS, hex('03'), hex('03'))),
    'has a modulus that is not an integer': () => rsaOf(der(0x04, MODULUS), ...numbers(hex('03'))),
    'has an empty number': () => rsaOf(...numbers(MODULUS, Buffer.alloc(0))),
    'has a negative modulus': () => rsaOf(...numbers(MODULUS.subarray(1), hex('03'))),
    'has a negative exponent': () => rsaOf(...numbers(MODULUS, hex('83'))),
    'has an exponent of zero': () => rsaOf(...numbers(MODULUS, hex('00'))),
    'has an exponent with a zero before it': () => rsaOf(...numbers(MODULUS, hex('0003'))),
    'has an even modulus': () => rsaOf(...numbers(Buffer.concat([MODULUS.subarray(0, -1), hex('02')]), hex('03'))),
    'is too short': () => rsaOf(...numbers(Buffer.concat([hex('7f'), Buffer.alloc(255, 1)]), hex('03'))),
  };
  for (const [what, read] of Object.entries(wrong)) {
    it(`is rejected when it ${what}`, () => expect(read).to.throw(DerError));
  }
});

describe('certificate name', () => {
  const pair = (oid: string, tag: number, value: Buffer | string) => der(0x30, der(0x06, hex(oid)), der(tag, Buffer.from(value as string)));
  const name = (...relatives: Buffer[][]) => der(0x30, ...relatives.map((pairs) => der(0x31, ...pairs)));

  it('is printed with the last part first, and values without text in hexadecimal', () => {
    const whole = name([pair('550406', 0x13, 'DE')], [pair('55040a', 0x0c, 'Örg'), pair('550403', 0x0c, 'A')]);
    expect(formatName(whole)).to.equal('O=Örg+CN=A,C=DE');
    expect(formatName(name([pair('550403', 0x1e, hex('0041'))]))).to.equal('CN=#1e020041');
    expect(formatName(name([pair('2a03', 0x0c, 'x')]))).to.equal('1.2.3=#0c0178');
    expect(formatName(name([pair('550403', 0x0c, hex('ff'))])), 'no UTF-8').to.equal('CN=#0c01ff');
    expect(formatName(name([pair('550403', 0x0c, ' #a,b=c\0 ')]))).to.equal('CN=\\ #a\\,b=c\\00\\ ');
  });

  it('is undefined if a part has no type or value', () => {
    for (const part of [der(0x30), der(0x30, hex('0603550403'))]) {
      expect(formatName(name([part]))).to.equal('');
      expect(attributesOf(name([part]), '2.5.4.3')).to.deep.equal([]);
    }
  });

  it('has all values of one type', () => {
    const whole = name([pair('550406', 0x13, 'DE')], [pair('550403', 0x0c, 'A')], [pair('550406', 0x1e, hex('0041'))]);
    expect(attributesOf(whole, '2.5.4.6')).to.deep.equal(['DE', '#1e020041']);
  });

  it('is rejected in data that are not a certificate', () => {
    const signed = der(0x30, hex('020101'), der(0x30));
    for (const bytes of [der(0x30), der(0x30, signed), hex('00')]) {
      expect(() => subjectLocation(bytes.toString('base64'))).to.throw(DerError);
    }
  });
});

describe('DER', () => {
  for (const [what, bytes] of [
    ['nothing', ''],
    ['a tag alone', '30'],
    ['a tag of many bytes', '1f0100'],
    ['an indefinite length', '3080020101'],
    ['a length of four bytes', '308400000003020101'],
    ['a length that is cut', '308201'],
    ['a short length in the long form', '308103020101'],
    ['a length with a zero before it', `30820081${'00'.repeat(129)}`],
    ['a content that is cut', '3004020101'],
  ] as const) {
    it(`rejects ${what}`, () => expect(() => parseElement(hex(bytes))).to.throw(DerError));
  }

  it('parses one element, with the expected tag', () => {
    expect(parseElement(hex('020105'), 0x02).content).to.deep.equal(hex('05'));
    expect(() => parseElement(hex('020105'), 0x30)).to.throw(DerError, 'unexpected tag');
    expect(() => parseElement(hex('02010500'))).to.throw(DerError, 'trailing bytes');
    expect(() => parseElements(hex('02010502'))).to.throw(DerError, 'tag');
    expect(() => parseElements(hex('050005000500'), 2)).to.throw(DerError, 'too many elements');
    expect(parseElements(hex('05000500'), 2)).to.have.length(2);
    expect(parseElement(hex(`308180${'00'.repeat(128)}`)).content).to.have.length(128);
  });

  it('parses object identifiers', () => {
    for (const [bytes, oid] of [
      ['2a03', '1.2.3'],
      ['550403', '2.5.4.3'],
      ['883703', '2.999.3'],
      ['00', '0.0'],
      ['2a8648ce3d030107', '1.2.840.10045.3.1.7'],
    ] as const) {
      expect(parseOid(hex(bytes))).to.equal(oid);
    }
    for (const bytes of ['', '2a80', '2affffffffffffffffffff7f']) {
      expect(() => parseOid(hex(bytes)), bytes).to.throw(DerError, 'object identifier');
    }
  });
});

describe('revocation sources of a certificate', () => {
  const sources = async (...extensions: Extension[]) => revocationSourcesOf((await readWith(...extensions)).whole.toString('base64'));
  const uri = (text: string) => der(0x86, Buffer.from(text));
  const point = (...names: Buffer[]) => der(0x30, der(0xa0, der(0xa0, ...names)));
  const points = (...all: Buffer[]) => new Extension('2.5.29.31', false, der(0x30, ...all));
  const responder = (oid: string, place: Buffer) => der(0x30, hex(oid), place);
  const OCSP = '06082b06010505073001';
  const responders = (...all: Buffer[]) => new Extension('1.3.6.1.5.5.7.1.1', false, der(0x30, ...all));

  it('are empty without extensions', async () => {
    expect(await sources()).to.deep.include({ points: [], responders: [], hasSources: false, isNeverRevoked: false });
    expect((await sources()).lifetime).to.equal(365 * 86_400_000);
  });

  it('contain a list at an address that can be called', async () => {
    const { points: found, hasSources } = await sources(
      points(
        point(uri('ldap://a.example/cn=x'), uri('http://a.example/1'), uri('https://a.example/2')),
        point(uri('ldap://a.example/cn=y')),
        point(uri('no address')),
        point(uri(`http://a.example/${'x'.repeat(2048)}`)),
        der(0x30, der(0xa0, der(0xa0, uri('http://some.example/'))), hex('81020640')),
        der(0x30, der(0xa2, der(0xa0, uri('http://issuer.example/')))),
        der(0x30, der(0xa0, der(0xa1, hex('0603550403')))),
        der(0x30),
      ),
    );
    expect(found).to.deep.equal([['http://a.example/1', 'https://a.example/2']]);
    expect(hasSources).to.equal(true);
  });

  it('contain a responder at an address that can be called', async () => {
    const read = await sources(
      responders(
        responder('06082b06010505073002', uri('http://ca.example/')),
        responder(OCSP, uri('http://ocsp.example/')),
        responder(OCSP, der(0x82, Buffer.from('http://name.example/'))),
        responder(OCSP, uri('ldap://ocsp.example/')),
        responder(OCSP.replace('06', '0d'), uri('http://type.example/')),
        der(0x30),
      ),
    );
    expect(read).to.deep.include({ responders: ['http://ocsp.example/'], hasSources: true });
    const none = await sources(responders(responder('06082b06010505073002', uri('http://ca.example/'))));
    expect(none).to.deep.include({ responders: [], hasSources: false });
  });

  it('are undefined for an invalid certificate', () => {
    const noNumber = der(0x30, der(0xa0, hex('020102')), der(0x30));
    const times = (count: number) => der(0x30, ...Array<Buffer>(count).fill(derTime(new Date('2026-01-01'))));
    const during = (validity: Buffer) => der(0x30, der(0x30, hex('020101'), der(0x30), der(0x30), validity));
    for (const bytes of [der(0x30), der(0x30, noNumber), ...[0, 1, 3].map((count) => during(times(count)))]) {
      expect(() => revocationSourcesOf(bytes.toString('base64'))).to.throw(DerError);
    }
    expect(revocationSourcesOf(during(times(2)).toString('base64')).lifetime).to.equal(0);
  });

  it('are requested with the serial number, which has a limited length', async () => {
    const [signed] = parseSequence((await readWith()).whole);
    const [version, , ...rest] = parseElements(signed?.content ?? Buffer.alloc(0)).map(({ encoded: whole }) => whole);
    const read = (serial: Buffer, before = version) =>
      revocationSourcesOf(der(0x30, der(0x30, ...(before ? [before] : []), serial, ...rest)).toString('base64')).serial;
    expect(read(hex('020107'))).to.deep.equal(hex('07'));
    expect(read(hex('020107'), hex('')), 'of the first version').to.deep.equal(hex('07'));
    expect(() => read(hex('040107'))).to.throw(DerError, 'serial number');
    expect(() => read(der(0x02, Buffer.alloc(128, 1)))).to.throw(DerError, 'serial number');
    expect(read(der(0x02, Buffer.alloc(127, 1)))).to.have.length(127);
  });
});

describe('pasted certificate', () => {
  it('is parsed as one PEM block', async () => {
    const [one, two] = [await certify({ name: 'One' }), await certify({ name: 'Two' })];
    const isTaken = (text: string) => CertificatePem.safeParse(text).success;
    expect(isTaken(pem(one))).to.equal(true);
    const broken = pem({ ...one, certificate: der(0x30).toString('base64') });
    for (const text of ['', one.certificate, pem(one) + pem(two), broken]) expect(isTaken(text)).to.equal(false);
  });
});

describe('distinguished name comparison (RFC 5280 section 7.1)', () => {
  const pair = (tag: number, text: string, type = '550403') => der(0x30, der(0x06, hex(type)), der(tag, Buffer.from(text)));
  const name = (...sets: Buffer[][]) => der(0x30, ...sets.map((pairs) => der(0x31, ...pairs))).toString('hex');
  const [UTF8, PRINTABLE, IA5, T61] = [0x0c, 0x13, 0x16, 0x14];
  const root = name([pair(PRINTABLE, 'UT', '550406')], [pair(PRINTABLE, 'Root One')]);
  const rows: [string, string, string, boolean][] = [
    ['another string type', root, name([pair(PRINTABLE, 'UT', '550406')], [pair(UTF8, 'Root One')]), true],
    ['another case', root, name([pair(PRINTABLE, 'ut', '550406')], [pair(UTF8, 'ROOT one')]), true],
    ['more white space', root, name([pair(UTF8, 'UT', '550406')], [pair(UTF8, ' Root\t  One ')]), true],
    ['missing white space', root, name([pair(UTF8, 'UT', '550406')], [pair(UTF8, 'RootOne')]), false],
    ['another order of relative names', root, name([pair(UTF8, 'Root One')], [pair(UTF8, 'UT', '550406')]), false],
    [
      'another order within a relative name',
      name([pair(UTF8, 'a'), pair(UTF8, 'b', '55040a')]),
      name([pair(UTF8, 'b', '55040a'), pair(UTF8, 'a')]),
      true,
    ],
    ['one relative name in two', name([pair(UTF8, 'a'), pair(UTF8, 'b')]), name([pair(UTF8, 'a')], [pair(UTF8, 'b')]), false],
    ['composed letters', name([pair(UTF8, 'Mu\u0308nchen')]), name([pair(UTF8, 'M\u00dcNCHEN')]), true],
    ['sharp s', name([pair(UTF8, 'Straße')]), name([pair(UTF8, 'STRASSE')]), true],
    ['another letter', name([pair(UTF8, 'Munchen')]), name([pair(UTF8, 'M\u00dcNCHEN')]), false],
    ['domain components', name([pair(IA5, 'Example')]), name([pair(IA5, 'example')]), true],
    ['a Teletex string in other case', name([pair(T61, 'Root')]), name([pair(T61, 'root')]), false],
    ['no name at all', root, '3003020101', false],
  ];
  for (const [what, one, other, expected] of rows) {
    it(`finds names with ${what} ${expected ? 'equal' : 'different'}`, () => {
      expect([isSameName(one, other), isSameName(other, one)]).to.deep.equal([expected, expected]);
    });
  }
});

const NOW = new Date('2026-06-01T12:00:00Z');

describe('authorities that sign with RSASSA-PSS', () => {
  const certificates = new NodeCertificates();
  const pair = rsaPair();
  let root: RsaCertified;

  const judge = (chain: readonly CertifiedKey[], anchor: CertifiedKey): string => {
    const verdict = certificates.verifyChain(
      chain.map(({ certificate }) => certificate),
      [{ certificate: anchor.certificate }],
      NOW,
      { purpose: 'mdoc', agreedOnly: true },
    );
    return verdict.trusted ? 'trusted' : verdict.reason;
  };

  before(async () => {
    root = await certifyRsa({ name: 'Root', ca: true }, { rsa: pair, signing: pss });
  });

  const signings: [string, (key: KeyObject) => Signing, string][] = [
    ['PKCS #1 and SHA-256', pkcs1, 'trusted'],
    ['PSS and SHA-256', pss, 'trusted'],
    ['PSS and SHA-512', (key) => pss(key, { hash: 'sha512', saltLength: 64 }), 'trusted'],
    ['PSS and a salt of 20 bytes', (key) => pss(key, { saltLength: 20 }), 'trusted'],
    ['PSS and SHA-1', (key) => pss(key, { hash: 'sha1', saltLength: 20 }), 'untrusted_chain'],
    ['PSS that names MGF1 with another hash', (key) => pss(key, { mask: 'sha512' }), 'untrusted_chain'],
    ['PSS that names another salt length', (key) => ({ ...pss(key), sign: pss(key, { saltLength: 20 }).sign }), 'untrusted_chain'],
    [
      'PSS without parameters',
      (key) => ({ algorithm: Buffer.from('300b06092a864886f70d01010a', 'hex'), sign: pss(key).sign }),
      'untrusted_chain',
    ],
    ['PSS by another key', () => pss(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey), 'untrusted_chain'],
  ];
  for (const [what, signing, expected] of signings) {
    it(`are ${expected} with ${what}, for a signer and for an authority below the anchor`, async () => {
      const by = () => signing(pair.privateKey);
      const signer = await certifyRsa({ name: 'Signer', by: root }, { signing: by });
      expect(judge([signer], root)).to.equal(expected);
      const middle = await certifyRsa({ name: 'Middle', by: root, ca: true }, { signing: by });
      expect(judge([await certify({ name: 'Low', by: middle }), middle], root)).to.equal(expected);
    });

    it(`have revocation lists ${expected === 'trusted' ? 'accepted' : 'rejected'} with ${what}`, () => {
      const list = parseCrl(makeCrl({ by: root, signing: signing(pair.privateKey) }));
      expect(certificates.hasSigned(root.certificate, list)).to.equal(expected === 'trusted');
    });
  }

  it('may have a key for RSASSA-PSS only', async () => {
    const rsa = pssPair();
    const authority = await certifyRsa({ name: 'PSS', ca: true }, { rsa, signing: pss });
    const signer = await certifyRsa({ name: 'Signer', by: authority }, { signing: () => pss(rsa.privateKey) });
    expect(judge([signer], authority)).to.equal('trusted');
    const list = parseCrl(makeCrl({ by: authority, signing: pss(rsa.privateKey) }));
    expect(certificates.hasSigned(authority.certificate, list)).to.equal(true);
  });

  it('are rejected with an RSA key of 1024 bits', async () => {
    const small = await certifyRsa({ name: 'Small', ca: true }, { rsa: rsaPair(1024), signing: pss });
    expect(parseCertificate(Buffer.from(small.certificate, 'base64'))).to.equal(undefined);
  });
});
