import { expect } from 'chai';
import { readPemCertificates, writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { processorTime } from '../../support/processor-time.ts';

const short = Buffer.concat([Buffer.of(0x30, 0x03), Buffer.from('abc')]).toString('base64');
const long = Buffer.concat([Buffer.of(0x30, 0x82, 0x01, 0x00), Buffer.alloc(256, 1)]).toString('base64');
const block = (body: string) => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
const der = (...bytes: number[]) => block(Buffer.from(bytes).toString('base64'));

describe('PEM certificates', () => {
  it('read back as they were written, in order', () => {
    const text = writePemCertificates([short, long, short]);
    expect(readPemCertificates(text)).to.deep.equal([short, long, short]);
    expect(Math.max(...text.split('\n').map((line) => line.length))).to.equal(64);
  });

  it('may have carriage returns and blank lines around them', () => {
    const text = `\r\n${writePemCertificates([long]).replaceAll('\n', '\r\n')}\r\n\r\n${block(short)}`;
    expect(readPemCertificates(text)).to.deep.equal([long, short]);
  });

  // RFC 7468 section 2
  for (const [what, text] of Object.entries({
    'openssl x509 -text': `Certificate:\n    Data:\n        Version: 3 (0x2)\n${block(long)}${block(short)}`,
    'openssl pkcs12': `Bag Attributes\n    localKeyID: 01 \nsubject=CN = CA\n\n${block(long)}Bag Attributes: <Empty>\n${block(short)}`,
    'a comment behind': `${block(long)}\n${block(short)}# valid until 2027, the end`,
  })) {
    it(`are read from the output of ${what}, whose text is ignored`, () => {
      expect(readPemCertificates(text)).to.deep.equal([long, short]);
    });
  }

  it('are looked for in no more time than the text is long', () => {
    const space = ' '.repeat(50_000);
    const begin = '-----BEGIN CERTIFICATE-----';
    for (const text of [space, begin + space, `${space}${begin}${space}A${space}`, begin.repeat(2_000)]) {
      const spent = processorTime(() => expect(readPemCertificates(text)).to.equal(undefined));
      expect(spent).to.be.lessThan(50);
    }
    expect(readPemCertificates(space + block(space + short + space) + space)).to.deep.equal([short]);
  });

  const refused: Record<string, string> = {
    'the empty text': '',
    'white space alone': ' \n',
    'a second block with a misspelt beginning': `${block(short)}${block(long).replace('-----BEGIN', '----BEGIN')}`,
    'a second block without a beginning': `${block(short)}${long}\n-----END CERTIFICATE-----\n`,
    'a second block without an end': `${block(short)}-----BEGIN CERTIFICATE-----\n${long}\n`,
    'a block of another label between text': `text\n${block(short)}${block(long).replaceAll('CERTIFICATE', 'X509 CRL')}`,
    'a second block with a broken body': `${block(short)}text\n${block('*')}`,
    'a private key': block(short).replaceAll('CERTIFICATE', 'PRIVATE KEY'),
    'a key behind a certificate': block(short) + block(short).replaceAll('CERTIFICATE', 'PRIVATE KEY'),
    'a block without an end': block(short).slice(0, 40),
    'an empty block': block(''),
    'base64 with foreign characters': block(short.replace('A', '*')),
    'base64 without its padding': block(short.replace(/=+$/, '')),
    'bytes behind the sequence': der(0x30, 0x01, 0x00, 0x00),
    'a sequence that is cut': der(0x30, 0x05, 0x00),
    'another type than a sequence': der(0x04, 0x01, 0x00),
    'an indefinite length': der(0x30, 0x80, 0x00, 0x00),
    'a length that is not minimal': der(0x30, 0x81, 0x01, 0x00),
    'more blocks than allowed': block(short).repeat(11),
  };
  for (const [name, text] of Object.entries(refused)) {
    it(`do not read from ${name}`, () => {
      expect(readPemCertificates(text)).to.equal(undefined);
    });
  }
});
