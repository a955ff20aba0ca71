import { webcrypto } from 'node:crypto';
import { X509CrlGenerator } from '@peculiar/x509';
import { expect } from 'chai';
import { parseCertificate } from '../../../domain/formats/der/certificate.ts';
import { type CertificateList, parseCrl } from '../../../domain/formats/der/crl.ts';
import { RevokedEntries } from '../../../domain/formats/der/crl-entries.ts';
import { DerError } from '../../../domain/formats/der/reader.ts';
import { processorTime } from '../../support/measurements.ts';
import {
  crlNumber,
  deltaIndicator,
  der,
  derTime,
  distributionPointName,
  extension,
  issuingDistributionPoint,
  makeCrl,
  nameParts,
  SCOPE_FLAGS,
} from '../../support/revocation-maker.ts';
import { type CertifiedKey, certify } from '../../support/test-certificates.ts';

const revokedBy = ({ entries }: CertificateList) => new RevokedEntries(entries);
const SERIAL = Buffer.from('0102030405060708090a0b0c0d0e0f10', 'hex');
const serialOf = (index: number) => {
  const serial = Buffer.from(SERIAL);
  serial.writeUInt32BE(index, 8);
  return serial;
};

describe('certificate revocation list', () => {
  const entryOf = (serial: Buffer, ...more: Buffer[]) => der(0x30, der(0x02, serial), derTime(new Date('2026-01-01T00:00:00Z')), ...more);

  let authority: CertifiedKey;
  before(async () => {
    authority = await certify({ name: 'Authority', ca: true });
  });

  it('of another implementation is parsed', async () => {
    const ecdsa = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
    const { privateKey } = await webcrypto.subtle.generateKey(ecdsa, true, ['sign', 'verify']);
    const made = await X509CrlGenerator.create({
      issuer: 'CN=Authority',
      thisUpdate: new Date('2026-06-01T00:00:00Z'),
      nextUpdate: new Date('2050-06-02T00:00:00Z'),
      entries: [{ serialNumber: '0102', revocationDate: new Date('2026-05-01T00:00:00Z'), reason: 4 }],
      signingAlgorithm: ecdsa,
      signingKey: privateKey,
    });
    const list = parseCrl(Buffer.from(made.rawData));
    expect(list.issuer).to.equal(parseCertificate(Buffer.from(authority.certificate, 'base64'))?.subject);
    expect(list.thisUpdate.toISOString()).to.equal('2026-06-01T00:00:00.000Z');
    expect(list.nextUpdate.toISOString(), 'a GeneralizedTime').to.equal('2050-06-02T00:00:00.000Z');
    expect(list.algorithm.oid).to.equal('1.2.840.10045.4.3.2');
    expect(revokedBy(list).find(Buffer.from([1, 2]))).to.deep.equal({ since: new Date('2026-05-01T00:00:00Z'), reason: 'superseded' });
    expect(revokedBy(list).find(Buffer.from([2, 1]))).to.equal(undefined);
  });

  it('has a number, and may be empty', () => {
    const list = parseCrl(makeCrl({ by: authority, extensions: [crlNumber(7)] }));
    expect([list.number, revokedBy(list).count, list.scope]).to.deep.equal(['07', 0, undefined]);
    expect(revokedBy(list).find(nameParts(authority.certificate).serial)).to.equal(undefined);
  });

  it('truncated or changed at any byte is rejected or parsed, without other errors', () => {
    const whole = makeCrl({ by: authority, revoked: [{ serial: SERIAL, reason: 1 }] });
    for (let at = 0; at < whole.length; at++) {
      expect(() => parseCrl(whole.subarray(0, at)), `${at} bytes`).to.throw(DerError);
      for (const bit of [0x01, 0x80, 0xff]) {
        const bent = Buffer.from(whole);
        bent[at] = (bent[at] ?? 0) ^ bit;
        try {
          revokedBy(parseCrl(bent)).find(SERIAL);
        } catch (error) {
          expect(error, `byte ${at} ${bit}`).to.be.instanceOf(DerError);
        }
      }
    }
  });

  it('contains serial numbers only at the position of serial numbers', () => {
    const hidden = der(0x30, der(0x30, der(0x06, Buffer.from([0x2a, 3])), der(0x04, der(0x02, SERIAL))));
    const list = new RevokedEntries(Buffer.concat([entryOf(Buffer.from([1]), hidden), entryOf(Buffer.from([2]))]));
    expect(list.count).to.equal(2);
    expect(list.find(SERIAL)).to.equal(undefined);
    expect(list.find(Buffer.from([2]))).to.include({ reason: 'unspecified' });
    const last = new RevokedEntries(Buffer.concat([entryOf(SERIAL), entryOf(Buffer.from([2]))]));
    expect(last.find(SERIAL)).to.include({ reason: 'unspecified' });
  });

  it('revokes the named certificates, even if the time is invalid', () => {
    const entry = der(0x30, der(0x02, SERIAL), der(0x17, Buffer.from('no time')));
    expect(new RevokedEntries(entry).find(SERIAL)).to.deep.equal({ reason: 'unspecified' });
  });

  it('has one form of each serial number', () => {
    for (const serial of ['', '0001', 'ffff', '00'.repeat(200)]) {
      expect(() => new RevokedEntries(entryOf(Buffer.from(serial, 'hex'))), serial).to.throw(DerError);
    }
    for (const serial of ['00', '7f', '0080', 'ff7f', '80']) {
      expect(new RevokedEntries(entryOf(Buffer.from(serial, 'hex'))).count, serial).to.equal(1);
    }
  });

  it('of fifty thousand entries is parsed in a short time, and searched in less', () => {
    const bytes = Buffer.concat(Array.from({ length: 50_000 }, (_, index) => entryOf(serialOf(index))));
    let list = new RevokedEntries(Buffer.alloc(0));
    const reading = processorTime(() => {
      list = new RevokedEntries(bytes);
    });
    const searching = processorTime(() => {
      expect(list.find(serialOf(60_000))).to.equal(undefined);
      expect(list.find(serialOf(49_999))).to.include({ reason: 'unspecified' });
    });
    expect(reading).to.be.below(250);
    expect(searching).to.be.below(250);
  });

  it('of a million elements is rejected at the first element above the limit', () => {
    const parts = Buffer.alloc(2_000_000);
    for (let at = 0; at < parts.length; at += 2) parts[at] = 0x30;
    expect(() => parseCrl(der(0x30, parts))).to.throw('too many elements');
    expect(() => parseCrl(der(0x30, der(0x30, parts), der(0x30), der(3)))).to.throw('too many elements');
    const extended = makeCrl({ by: authority, extensions: [parts] });
    expect(() => parseCrl(extended)).to.throw('too many elements');
    const entry = entryOf(SERIAL, der(0x30, parts));
    expect(() => new RevokedEntries(entry)).to.throw('too many elements');
  });

  it('of more than 100,000 entries is rejected', () => {
    const short = entryOf(Buffer.from([1]));
    expect(new RevokedEntries(Buffer.concat(Array(100_000).fill(short))).count).to.equal(100_000);
    expect(() => new RevokedEntries(Buffer.concat(Array(100_001).fill(short)))).to.throw('too many entries');
  });
});

const hex = (text: string) => Buffer.from(text, 'hex');
const at = (text: string) => derTime(new Date(text));
const ALGORITHM = der(0x30, hex('06082a8648ce3d040302'));
const SIGNATURE = der(0x03, Buffer.from([0]), Buffer.from('signature'));
const SECOND = hex('020101');
const NAME = der(0x30, der(0x31, der(0x30, hex('0603550403'), der(0x0c, Buffer.from('A')))));
const BEGIN = at('2026-06-01T00:00:00Z');
const END = at('2026-06-02T00:00:00Z');
const entryOf = (serial: Buffer, ...more: Buffer[]) => der(0x30, der(0x02, serial), BEGIN, ...more);
const FIELDS = [SECOND, ALGORITHM, NAME, BEGIN, END];

/** What is read of a list with these fields. */
const list = (...fields: readonly Buffer[]) => parseCrl(der(0x30, der(0x30, ...fields), ALGORITHM, SIGNATURE));
const extended = (...extensions: readonly Buffer[]) => list(...FIELDS, der(0xa0, der(0x30, ...extensions)));

describe('structure of a certificate revocation list', () => {
  it('has all required fields, and no others', () => {
    expect(list(...FIELDS)).to.deep.equal({
      toBeSigned: der(0x30, ...FIELDS),
      algorithm: { oid: '1.2.840.10045.4.3.2' },
      signature: Buffer.from('signature'),
      issuer: NAME.toString('hex'),
      thisUpdate: new Date('2026-06-01T00:00:00Z'),
      nextUpdate: new Date('2026-06-02T00:00:00Z'),
      entries: Buffer.alloc(0),
    });
    const entry = entryOf(Buffer.from([1]));
    expect(list(...FIELDS, der(0x30, entry)).entries).to.deep.equal(entry);
  });

  it('may have version 1, which has no extensions', () => {
    expect(list(...FIELDS.slice(1)).issuer).to.equal(NAME.toString('hex'));
    const extensions = der(0xa0, der(0x30, crlNumber(1)));
    expect(() => list(...FIELDS.slice(1), extensions)).to.throw(DerError, 'unknown field');
  });

  const tbs = der(0x30, ...FIELDS);
  const wrong: readonly (readonly [string, string, () => unknown])[] = [
    ['signs no sequence', 'not a certificate revocation list', () => parseCrl(der(0x30, der(0x31, ...FIELDS), ALGORITHM, SIGNATURE))],
    ['is empty', 'not a certificate revocation list', () => parseCrl(der(0x30))],
    ['has no algorithm', 'not a certificate revocation list', () => parseCrl(der(0x30, tbs))],
    ['has no signature', 'not a certificate revocation list', () => parseCrl(der(0x30, tbs, ALGORITHM))],
    ['has two signatures', 'not a certificate revocation list', () => parseCrl(der(0x30, tbs, ALGORITHM, SIGNATURE, SIGNATURE))],
    ['has a signature that is not a bit string', 'signature', () => parseCrl(der(0x30, tbs, ALGORITHM, der(0x04, Buffer.from([0, 1]))))],
    ['has a signature of some bits', 'signature', () => parseCrl(der(0x30, tbs, ALGORITHM, der(0x03, Buffer.from([1, 2]))))],
    ['is of version 3', 'version', () => list(hex('020102'), ...FIELDS.slice(1))],
    ['says nothing', 'algorithm', () => list()],
    ['names another algorithm inside', 'algorithm', () => list(SECOND, der(0x30, hex('06082a8648ce3d040303')), NAME, BEGIN, END)],
    ['has an issuer that is not a name', 'issuer', () => list(SECOND, ALGORITHM, der(0x31), BEGIN, END)],
    ['has no issuer', 'issuer', () => list(SECOND, ALGORITHM)],
    ['has no time', 'issuer', () => list(SECOND, ALGORITHM, NAME)],
    [
      'does not say when the next one comes',
      'nextUpdate',
      () => list(SECOND, ALGORITHM, NAME, BEGIN, der(0x30, entryOf(Buffer.from([1])))),
    ],
    ['says nothing after its beginning', 'nextUpdate', () => list(SECOND, ALGORITHM, NAME, BEGIN)],
    ['ends before it begins', 'nextUpdate', () => list(SECOND, ALGORITHM, NAME, END, BEGIN)],
    ['has a field that is unknown', 'unknown field', () => list(...FIELDS, der(0xa1, der(0x30)))],
    ['has a field behind its extensions', 'unknown field', () => list(...FIELDS, der(0xa0, der(0x30, crlNumber(1))), der(0xa0, der(0x30)))],
    ['is about changes alone', 'a delta list', () => extended(deltaIndicator())],
    ['has a critical extension that is unknown', 'critical 1.2.3', () => extended(extension('2a03', hex('0500'), true))],
    ['is about some reasons', 'some reasons', () => extended(issuingDistributionPoint(SCOPE_FLAGS.reasons))],
    ['is of several issuers', 'the list is indirect', () => extended(issuingDistributionPoint(SCOPE_FLAGS.indirect))],
    [
      'is about users alone and authorities alone',
      'scope',
      () => extended(issuingDistributionPoint(SCOPE_FLAGS.users, SCOPE_FLAGS.authorities)),
    ],
    [
      'is about authorities alone and users alone',
      'scope',
      () => extended(issuingDistributionPoint(SCOPE_FLAGS.authorities, SCOPE_FLAGS.users)),
    ],
    ['is about attributes alone', 'scope', () => extended(issuingDistributionPoint(hex('8501ff')))],
    [
      'is for a point named beside its issuer',
      'relative name',
      () => extended(issuingDistributionPoint(der(0xa0, der(0xa1, hex('0603550403'))))),
    ],
  ];
  for (const [what, message, read] of wrong) {
    it(`is rejected when it ${what}`, () => expect(read).to.throw(DerError, message));
  }

  it('has the scope of its certificates', () => {
    const scopes = (...fields: Buffer[]) => extended(issuingDistributionPoint(...fields)).scope;
    expect(scopes(SCOPE_FLAGS.users)).to.deep.equal({ only: 'users' });
    expect(scopes(SCOPE_FLAGS.authorities)).to.deep.equal({ only: 'authorities' });
    expect(scopes(distributionPointName('http://a.example/crl'), SCOPE_FLAGS.users)).to.deep.equal({
      points: ['http://a.example/crl'],
      only: 'users',
    });
    expect(scopes(...['810100', '820100', '840100', '850100'].map(hex)), 'what is not set').to.deep.equal({});
    const directory = der(0xa4, NAME);
    const both = der(0xa0, der(0xa0, directory, der(0x86, Buffer.from('http://a.example'))));
    expect(scopes(both)?.points, 'addresses alone').to.deep.equal(['http://a.example']);
  });

  it('names the key of its issuer, if it is present', () => {
    const keyOf = (...parts: Buffer[]) => extended(extension('551d23', der(0x30, ...parts))).authorityKeyId;
    expect(keyOf(der(0x80, hex('aabb')))).to.equal(hex('aabb').toString('base64url'));
    expect(keyOf(der(0x82, hex('07')), der(0x80, hex('aabb')))).to.equal(hex('aabb').toString('base64url'));
    expect(keyOf(der(0x82, hex('07')))).to.equal(undefined);
    expect(extended(crlNumber(3)))
      .to.include({ number: '03' })
      .and.not.have.property('authorityKeyId');
  });
});

describe('structure of revocation list entries', () => {
  const SERIAL = Buffer.alloc(20, 0x5a);
  const reason = (code: number) => extension('551d15', der(0x0a, Buffer.from([code])));
  const other = (critical: boolean) => extension('551d18', hex('0101'), critical);
  const found = (...entries: Buffer[]) => new RevokedEntries(Buffer.concat(entries)).find(SERIAL);
  const since = new Date('2026-06-01T00:00:00Z');

  it('has the reason of the reason extension', () => {
    expect(found(entryOf(SERIAL, der(0x30, other(false), reason(4))))).to.deep.equal({ since, reason: 'superseded' });
    expect(found(entryOf(SERIAL, der(0x30, other(false))))).to.deep.equal({ since, reason: 'unspecified' });
  });

  it('may have a critical reason extension, and no other critical extension', () => {
    const critical = (oid: string) => der(0x30, hex(oid), hex('0101ff'), der(0x04, hex('0a0101')));
    expect(found(entryOf(SERIAL, der(0x30, critical('0603551d15'))))).to.include({ reason: 'keyCompromise' });
    const explicit = der(0x30, hex('0603551d18'), hex('010100'), der(0x04, hex('0101')));
    expect(found(entryOf(SERIAL, der(0x30, explicit)))).to.include({ reason: 'unspecified' });
    for (const more of [critical('0603551d1d'), other(true)]) {
      expect(() => found(entryOf(SERIAL, der(0x30, more)))).to.throw(DerError, 'critical entry extension');
    }
  });

  it('uses the first of two entries for one certificate', () => {
    const [one, two] = [1, 4].map((code) => entryOf(SERIAL, der(0x30, reason(code)))) as [Buffer, Buffer];
    expect(found(one, two)).to.include({ reason: 'keyCompromise' });
    expect(found(two, one)).to.include({ reason: 'superseded' });
  });

  it('does not match another serial number of the same length or with the same prefix', () => {
    const hidden = entryOf(Buffer.from([1]), der(0x30, der(0x30, hex('06022a03'), der(0x04, der(0x02, SERIAL)))));
    const alike = Buffer.concat([SERIAL.subarray(1), Buffer.from([0x5b])]);
    expect(found(hidden, entryOf(alike))).to.equal(undefined);
    expect(found(hidden, entryOf(Buffer.from([2])))).to.equal(undefined);
    expect(found(hidden, entryOf(SERIAL))).to.include({ reason: 'unspecified' });
  });

  it('is rejected when it is truncated anywhere', () => {
    const long = entryOf(SERIAL, der(0x30, extension('2a03', Buffer.alloc(300))));
    for (const entry of [entryOf(Buffer.from([1])), long]) {
      expect(new RevokedEntries(entry).count).to.equal(1);
      for (let length = 1; length < entry.length; length++) {
        expect(() => new RevokedEntries(entry.subarray(0, length)), `${length} bytes`).to.throw(DerError);
      }
    }
  });

  /** Fills a length of 128. */
  const content = Buffer.concat([der(0x02, Buffer.alloc(107, 1)), BEGIN, hex('30023000')]);
  for (const [what, bytes] of [
    ['is not a sequence', der(0x31, der(0x02, SERIAL), BEGIN)],
    ['has a serial number that is not an integer', der(0x30, der(0x04, SERIAL), BEGIN)],
    ['has a serial number of more than 127 bytes', entryOf(Buffer.alloc(200, 1))],
    ['has no time', der(0x30, der(0x02, SERIAL))],
    ['has a time that goes beyond it', der(0x30, der(0x02, SERIAL), hex('170d32'))],
    ['has a length without an end', Buffer.concat([hex('3080'), content])],
    ['has a length of four bytes', Buffer.concat([hex('3084000000'), Buffer.from([content.length]), content])],
    ['has a short length in the long form', Buffer.concat([hex('3081'), entryOf(Buffer.from([1])).subarray(1)])],
    ['has a length with a zero before it', Buffer.concat([hex('308200'), Buffer.from([content.length]), content])],
  ] as const) {
    it(`is rejected when it ${what}`, () => expect(() => new RevokedEntries(bytes)).to.throw(DerError));
  }

  it('may have a length of 128', () => {
    expect(new RevokedEntries(Buffer.concat([hex('308180'), content])).count).to.equal(1);
  });
});
