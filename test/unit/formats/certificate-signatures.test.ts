import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect } from 'chai';
import { NodeCertificates } from '../../../adapters/crypto/certificates.ts';
import { readCertificate } from '../../../domain/formats/der/certificate.ts';
import { readCrl } from '../../../domain/formats/der/crl.ts';
import { makeCrl, type Signing } from '../../support/crl-maker.ts';
import { certifyRsa, pkcs1, pss, pssPair, type RsaCertified, rsaPair } from '../../support/rsa-signing.ts';
import { type Certified, certify } from '../../support/test-certificates.ts';

const NOW = new Date('2026-06-01T12:00:00Z');

describe('Authorities that sign with RSASSA-PSS', () => {
  const certificates = new NodeCertificates();
  const pair = rsaPair();
  let root: RsaCertified;

  const judge = (chain: readonly Certified[], anchor: Certified): string => {
    const verdict = certificates.validate(
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
    [
      'PSS that names another salt length',
      (key) => ({ ...pss(key), sign: pss(key, { saltLength: 20 }).sign }),
      'untrusted_chain',
    ],
    [
      'PSS without parameters',
      (key) => ({ algorithm: Buffer.from('300b06092a864886f70d01010a', 'hex'), sign: pss(key).sign }),
      'untrusted_chain',
    ],
    [
      'PSS by another key',
      () => pss(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey),
      'untrusted_chain',
    ],
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
      const list = readCrl(makeCrl({ by: root, signing: signing(pair.privateKey) }));
      expect(certificates.hasSigned(root.certificate, list)).to.equal(expected === 'trusted');
    });
  }

  it('may have a key that is for RSASSA-PSS alone, which signs nothing else', async () => {
    const rsa = pssPair();
    const authority = await certifyRsa({ name: 'PSS', ca: true }, { rsa, signing: pss });
    const signer = await certifyRsa(
      { name: 'Signer', by: authority },
      { signing: () => pss(rsa.privateKey) },
    );
    expect(judge([signer], authority)).to.equal('trusted');
    const list = readCrl(makeCrl({ by: authority, signing: pss(rsa.privateKey) }));
    expect(certificates.hasSigned(authority.certificate, list)).to.equal(true);
  });

  it('are not read with an RSA key of 1024 bits', async () => {
    const small = await certifyRsa({ name: 'Small', ca: true }, { rsa: rsaPair(1024), signing: pss });
    expect(readCertificate(Buffer.from(small.certificate, 'base64'))).to.equal(undefined);
  });
});
