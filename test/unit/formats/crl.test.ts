import { webcrypto } from 'node:crypto';
import { X509CrlGenerator } from '@peculiar/x509';
import { expect } from 'chai';
import { readCertificate } from '../../../domain/formats/der/certificate.ts';
import { type CertificateList, readCrl } from '../../../domain/formats/der/crl.ts';
import { RevokedEntries } from '../../../domain/formats/der/crl-entries.ts';
import { DerError } from '../../../domain/formats/der/reader.ts';
import { crlNumber, der, makeCrl, namesOf, time } from '../../support/crl-maker.ts';
import { processorTime } from '../../support/processor-time.ts';
import { type Certified, certify } from '../../support/test-certificates.ts';

const revokedBy = ({ entries }: CertificateList) => new RevokedEntries(entries);
const SERIAL = Buffer.from('0102030405060708090a0b0c0d0e0f10', 'hex');
const entryOf = (serial: Buffer, ...more: Buffer[]) =>
  der(0x30, der(0x02, serial), time(new Date('2026-01-01T00:00:00Z')), ...more);
const serialOf = (index: number) => {
  const serial = Buffer.from(SERIAL);
  serial.writeUInt32BE(index, 8);
  return serial;
};

describe('A certificate revocation list', () => {
  let authority: Certified;
  before(async () => {
    authority = await certify({ name: 'Authority', ca: true });
  });

  it('of another maker is read', async () => {
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
    const list = readCrl(Buffer.from(made.rawData));
    expect(list.issuer).to.equal(readCertificate(Buffer.from(authority.certificate, 'base64'))?.subject);
    expect(list.thisUpdate.toISOString()).to.equal('2026-06-01T00:00:00.000Z');
    expect(list.nextUpdate.toISOString(), 'a GeneralizedTime').to.equal('2050-06-02T00:00:00.000Z');
    expect(list.algorithm.oid).to.equal('1.2.840.10045.4.3.2');
    expect(revokedBy(list).find(Buffer.from([1, 2]))).to.deep.equal({
      since: new Date('2026-05-01T00:00:00Z'),
      reason: 'superseded',
    });
    expect(revokedBy(list).find(Buffer.from([2, 1]))).to.equal(undefined);
  });

  it('says its number, and may name nobody', () => {
    const list = readCrl(makeCrl({ by: authority, extensions: [crlNumber(7)] }));
    expect([list.number, revokedBy(list).count, list.scope]).to.deep.equal(['07', 0, undefined]);
    expect(revokedBy(list).find(namesOf(authority.certificate).serial)).to.equal(undefined);
  });

  it('cut off or bent at any byte is refused or reads as a list, and throws nothing else', () => {
    const whole = makeCrl({ by: authority, revoked: [{ serial: SERIAL, reason: 1 }] });
    for (let at = 0; at < whole.length; at++) {
      expect(() => readCrl(whole.subarray(0, at)), `${at} bytes`).to.throw(DerError);
      for (const bit of [0x01, 0x80, 0xff]) {
        const bent = Buffer.from(whole);
        bent[at] = (bent[at] ?? 0) ^ bit;
        try {
          revokedBy(readCrl(bent)).find(SERIAL);
        } catch (error) {
          expect(error, `byte ${at} ${bit}`).to.be.instanceOf(DerError);
        }
      }
    }
  });

  it('finds a serial number where serial numbers stand and nowhere else', () => {
    const hidden = der(0x30, der(0x30, der(0x06, Buffer.from([0x2a, 3])), der(0x04, der(0x02, SERIAL))));
    const list = new RevokedEntries(
      Buffer.concat([entryOf(Buffer.from([1]), hidden), entryOf(Buffer.from([2]))]),
    );
    expect(list.count).to.equal(2);
    expect(list.find(SERIAL)).to.equal(undefined);
    expect(list.find(Buffer.from([2]))).to.include({ reason: 'unspecified' });
    const last = new RevokedEntries(Buffer.concat([entryOf(SERIAL), entryOf(Buffer.from([2]))]));
    expect(last.find(SERIAL)).to.include({ reason: 'unspecified' });
  });

  it('revokes whom it names, also where the time cannot be read', () => {
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

  it('of fifty thousand holds the thread for a moment only, and a look into it for less', () => {
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

  it('of a million parts is refused at the first that is too many', () => {
    const parts = Buffer.alloc(2_000_000);
    for (let at = 0; at < parts.length; at += 2) parts[at] = 0x30;
    expect(() => readCrl(der(0x30, parts))).to.throw('too many elements');
    expect(() => readCrl(der(0x30, der(0x30, parts), der(0x30), der(3)))).to.throw('too many elements');
    const extended = makeCrl({ by: authority, extensions: [parts] });
    expect(() => readCrl(extended)).to.throw('too many elements');
    const entry = entryOf(SERIAL, der(0x30, parts));
    expect(() => new RevokedEntries(entry)).to.throw('too many elements');
  });

  it('of more than a hundred thousand is refused', () => {
    const short = entryOf(Buffer.from([1]));
    expect(new RevokedEntries(Buffer.concat(Array(100_000).fill(short))).count).to.equal(100_000);
    expect(() => new RevokedEntries(Buffer.concat(Array(100_001).fill(short)))).to.throw('too many entries');
  });
});
