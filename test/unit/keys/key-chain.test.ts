import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { MasterCipher } from '../../../adapters/crypto/cipher.ts';
import { X509Authority } from '../../../adapters/crypto/x509-authority.ts';
import { KmsRegistry } from '../../../adapters/kms/kms-registry.ts';
import { LocalKms } from '../../../adapters/kms/local/local-kms.ts';
import { NodeRandom } from '../../../adapters/system/random.ts';
import { createKeyChain } from '../../../application/keys/create-key-chain.ts';
import { Clock } from '../../../application/ports/clock.ts';
import { parsePemCertificates, writePemCertificates } from '../../../domain/formats/der/pem.ts';
import { assertDocumentSigner, MDL_DOCUMENT_SIGNER, parseDocumentSigner } from '../../../domain/formats/mdoc/document-signer.ts';
import { caValidity, commonNames, leafValidity } from '../../../domain/keys/certificate-profile.ts';
import { documentSignerChain, type KeyChain, type KeyUsage, selectKeyChain, signingChain } from '../../../domain/keys/key-chain.ts';
import { findKeyChainProblems } from '../../../domain/keys/key-chain-findings.ts';
import type { StoredKey } from '../../../domain/keys/signing-key.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { SIGNING_ALGORITHMS } from '../../../domain/shared/jwk.ts';
import { NO_ORGANIZATION } from '../../../domain/tenants/organization.ts';
import { processorTime } from '../../support/measurements.ts';

const NOW = new Date('2026-06-01T00:00:00Z');
const LATER = new Date('2027-01-01T00:00:00Z');

const aKey: StoredKey = {
  handle: { kms: 'local', keyId: 'k', algorithm: 'ES256' },
  publicJwk: { kty: 'EC', crv: 'P-256', x: 'AA', y: 'AA' },
};

function aKeyChain(changes: Partial<KeyChain> = {}): KeyChain {
  return {
    id: 'one',
    tenantId: 'acme',
    usages: ['signing'],
    kmsProvider: 'local',
    root: { key: aKey, certificate: 'ROOT', notAfter: LATER },
    active: { key: aKey, certificates: ['LEAF'], notAfter: LATER },
    rotationEnabled: false,
    rotationIntervalDays: 90,
    certValidityDays: 365,
    createdAt: new Date('2026-01-02T00:00:00Z'),
    updatedAt: NOW,
    ...changes,
  };
}

function failureOf(work: () => unknown): Failure {
  try {
    work();
  } catch (error) {
    if (error instanceof Failure) return error;
    throw error;
  }
  throw new Error('Expected a Failure.');
}

describe('signingChain', () => {
  it('contains the leaf and its intermediates', () => {
    const active = { key: aKey, certificates: ['LEAF', 'MIDDLE'], notAfter: LATER };
    expect(signingChain(aKeyChain({ active }))).to.deep.equal(['LEAF', 'MIDDLE']);
  });

  it('never contains the root', () => {
    const active = { key: aKey, certificates: ['LEAF', 'ROOT'], notAfter: LATER };
    expect(signingChain(aKeyChain({ active }))).to.deep.equal(['LEAF']);
  });

  it('is the imported chain if there is no local root', () => {
    const { root, ...imported } = aKeyChain();
    expect(root).to.not.equal(undefined);
    expect(signingChain(imported)).to.deep.equal(['LEAF']);
  });
});

describe('documentSignerChain', () => {
  it('contains the mdoc certificates if there are any, without the root', () => {
    const active = { ...aKeyChain().active, documentSigner: ['SIGNER', 'ROOT'] };
    expect(documentSignerChain(aKeyChain({ active }))).to.deep.equal(['SIGNER']);
    expect(signingChain(aKeyChain({ active }))).to.deep.equal(['LEAF']);
  });

  it('contains the chain for all purposes if there is no special one', () => {
    expect(documentSignerChain(aKeyChain())).to.deep.equal(['LEAF']);
  });
});

describe('pickKeyChain', () => {
  const older = aKeyChain({ id: 'older', createdAt: new Date('2026-01-01T00:00:00Z') });
  const newer = aKeyChain({ id: 'newer' });
  const lists = aKeyChain({ id: 'lists', usages: ['statusList', 'trustList'] });
  const expired = aKeyChain({
    id: 'expired',
    createdAt: new Date('2025-01-01T00:00:00Z'),
    active: { key: aKey, certificates: ['LEAF'], notAfter: NOW },
  });
  const chains = [newer, lists, older, expired];

  it('uses the requested chain', () => {
    expect(selectKeyChain(chains, 'signing', NOW, 'newer').id).to.equal('newer');
  });

  it('uses the oldest valid chain of the usage', () => {
    expect(selectKeyChain(chains, 'signing', NOW).id).to.equal('older');
    expect(selectKeyChain(chains, 'trustList', NOW).id).to.equal('lists');
  });

  it('does not reorder the given list', () => {
    selectKeyChain(chains, 'signing', NOW);
    expect(chains.map(({ id }) => id)).to.deep.equal(['newer', 'lists', 'older', 'expired']);
  });

  const rejectedCases: [string, readonly KeyChain[], KeyUsage, string | undefined, string, string][] = [
    ['an unknown id', chains, 'signing', 'unknown', 'not_found', '"unknown"'],
    ['a chain for another usage', chains, 'signing', 'lists', 'invalid_input', 'usage "signing"'],
    ['a requested chain with an expired leaf', chains, 'signing', 'expired', 'invalid_input', 'expired at 2026-06-01'],
    ['a usage without a chain', chains, 'access', undefined, 'invalid_input', 'usage "access"'],
    ['a usage whose chains have all expired', [expired], 'signing', undefined, 'invalid_input', 'Rotate it'],
    ['a tenant without chains', [], 'signing', undefined, 'invalid_input', 'Create one'],
  ];
  for (const [name, chains, usage, wantedId, code, message] of rejectedCases) {
    it(`rejects ${name}`, () => {
      const failure = failureOf(() => selectKeyChain(chains, usage, NOW, wantedId));
      expect(failure.code).to.equal(code);
      expect(failure.message).to.contain(message);
    });
  }
});

class StoppedClock extends Clock {
  override now(): Date {
    return new Date('2026-06-01T12:00:00Z');
  }
}

function parse(base64: string | undefined): X509Certificate {
  return new X509Certificate(Buffer.from(base64 ?? '', 'base64'));
}

describe('makeKeyChain', () => {
  const random = new NodeRandom();
  const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
  const provider = new LocalKms({ name: 'local', cipher, random });
  let generated = 0;
  class CountingKms extends KmsRegistry {
    override generate(...parameters: Parameters<KmsRegistry['generate']>) {
      generated++;
      return super.generate(...parameters);
    }
  }
  const kms = new CountingKms({ providers: [{ name: 'local', type: 'local', provider }], default: 'local' });
  const ports = { kms, random, clock: new StoppedClock(), certificateAuthority: new X509Authority({ kms, random }) };
  const parameters = {
    tenantId: 'acme',
    usages: ['signing'],
    subjectName: 'Acme',
    publicUrl: 'https://issuer.example',
    certificateSubject: NO_ORGANIZATION,
  } as const;

  for (const algorithm of SIGNING_ALGORITHMS) {
    it(`creates a CA and a leaf below it, with ${algorithm}`, async () => {
      const chain = await createKeyChain(ports, { ...parameters, algorithm });
      const [ca, leaf] = [parse(chain.root?.certificate), parse(signingChain(chain)[0])];
      expect(signingChain(chain)).to.have.length(1);
      expect(leaf.checkIssued(ca) && leaf.verify(ca.publicKey)).to.equal(true);
      expect([ca.ca, leaf.ca]).to.deep.equal([true, false]);
      expect(leaf.checkHost('issuer.example')).to.equal('issuer.example');
      expect(leaf.publicKey.export({ format: 'jwk' })).to.include({ x: chain.active.key.publicJwk.x });
      expect(leaf.validToDate).to.deep.equal(chain.active.notAfter);
      expect(ca.validToDate).to.deep.equal(chain.root?.notAfter);
      expect(chain.active.key.handle).to.include({ kms: 'local', algorithm });
      expect(chain.active.key.handle.keyId).to.not.equal(chain.root?.key.handle.keyId);
    });
  }

  it('creates a separate document signer certificate for mdocs for a key that signs credentials', async () => {
    const chain = await createKeyChain(ports, parameters);
    const [plain = '', signer = ''] = [signingChain(chain)[0], documentSignerChain(chain)[0]];
    expect(parse(signer).checkIssued(parse(chain.root?.certificate))).to.equal(true);
    expect(parse(signer).publicKey.equals(parse(plain).publicKey)).to.equal(true);
    expect(() => assertDocumentSigner(parseDocumentSigner(signer), MDL_DOCUMENT_SIGNER)).to.not.throw();
    expect(parseDocumentSigner(plain).usages).to.equal(undefined);
    const access = await createKeyChain(ports, { ...parameters, usages: ['access', 'statusList'] });
    expect(access.active).to.not.have.property('documentSigner');
  });

  it('creates certificates without warnings, and warns about incomplete imported ones', async () => {
    const certificateSubject = { organizationIdentifier: 'VATDE-123456789', contact: 'mailto:trust@acme.example' };
    const explicit = { ...parameters, certificateSubject, organization: 'Acme', country: 'DE' };
    const problemsOf = ({ root: _root, ...chain }: KeyChain, certificates: readonly string[]) =>
      findKeyChainProblems({ ...chain, active: { ...chain.active, certificates } }, null);
    const signing = await createKeyChain(ports, explicit);
    expect(problemsOf(signing, documentSignerChain(signing))).to.deep.equal([]);
    const access = await createKeyChain(ports, { ...explicit, usages: ['access'] });
    expect(problemsOf(access, signingChain(access))).to.deep.equal([]);

    const withoutRoot = await createKeyChain(ports, { ...parameters, usages: ['signing', 'access'], certValidityDays: 500 });
    const [signer, reader, shared, ...others] = problemsOf(withoutRoot, signingChain(withoutRoot));
    expect(others).to.deep.equal([]);
    expect(shared).to.include({ rule: 'ETSI TS 119 602 annexes D and F', member: 'usages' });
    expect(reader).to.include({ profileRule: 'ETSI TS 119 411-8 section 6.6.1', member: 'certificates' });
    expect(signer).to.include({ rule: 'ISO/IEC 18013-5 table B.3', member: 'certificates' });
    expect(signer?.change).to.equal(
      'request a certificate from its authority with a country, the extended key usage 1.0.18013.5.1.2, critical, an expiry within 457 days',
    );
    expect(reader?.change).to.equal(
      'request a certificate from its authority with a country, an organization identifier, a certificate policy',
    );
  });

  it('adds defaults', async () => {
    const chain = await createKeyChain(ports, parameters);
    expect(chain).to.deep.include({
      tenantId: 'acme',
      usages: ['signing'],
      kmsProvider: 'local',
      certValidityDays: 365,
      rotationEnabled: false,
      createdAt: new Date('2026-06-01T12:00:00Z'),
    });
    expect(chain.id).to.have.length(22);
    expect(chain).to.not.have.any.keys('description', 'previous', 'lastRotatedAt');
    const keyChain = await createKeyChain(ports, { ...parameters, id: 'main', description: 'PID', certValidityDays: 30 });
    expect(keyChain).to.include({ id: 'main', description: 'PID', certValidityDays: 30 });
  });

  it('creates no key for a rejected request', async () => {
    const before = generated;
    const outcome = await createKeyChain(ports, { ...parameters, certValidityDays: 0 }).catch((e: unknown) => e);
    expect(outcome).to.be.instanceOf(Failure).with.property('code', 'invalid_input');
    expect(generated).to.equal(before);
  });
});

const shortBlock = Buffer.concat([Buffer.of(0x30, 0x03), Buffer.from('abc')]).toString('base64');
const longBlock = Buffer.concat([Buffer.of(0x30, 0x82, 0x01, 0x00), Buffer.alloc(256, 1)]).toString('base64');
const block = (body: string) => `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
const der = (...bytes: number[]) => block(Buffer.from(bytes).toString('base64'));

describe('PEM certificates', () => {
  it('are parsed as they were written, in order', () => {
    const text = writePemCertificates([shortBlock, longBlock, shortBlock]);
    expect(parsePemCertificates(text)).to.deep.equal([shortBlock, longBlock, shortBlock]);
    expect(Math.max(...text.split('\n').map((line) => line.length))).to.equal(64);
  });

  it('may have carriage returns and blank lines around them', () => {
    const text = `\r\n${writePemCertificates([longBlock]).replaceAll('\n', '\r\n')}\r\n\r\n${block(shortBlock)}`;
    expect(parsePemCertificates(text)).to.deep.equal([longBlock, shortBlock]);
  });

  // RFC 7468 section 2
  for (const [description, text] of Object.entries({
    'openssl x509 -text': `Certificate:\n    Data:\n        Version: 3 (0x2)\n${block(longBlock)}${block(shortBlock)}`,
    'openssl pkcs12': `Bag Attributes\n    localKeyID: 01 \nsubject=CN = CA\n\n${block(longBlock)}Bag Attributes: <Empty>\n${block(shortBlock)}`,
    'a comment behind': `${block(longBlock)}\n${block(shortBlock)}# valid until 2027, the end`,
  })) {
    it(`are read from the output of ${description}, whose text is ignored`, () => {
      expect(parsePemCertificates(text)).to.deep.equal([longBlock, shortBlock]);
    });
  }

  it('are parsed in linear time', () => {
    const space = ' '.repeat(50_000);
    const begin = '-----BEGIN CERTIFICATE-----';
    for (const text of [space, begin + space, `${space}${begin}${space}A${space}`, begin.repeat(2_000)]) {
      const cpuMs = processorTime(() => expect(parsePemCertificates(text)).to.equal(undefined));
      expect(cpuMs).to.be.lessThan(50);
    }
    expect(parsePemCertificates(space + block(space + shortBlock + space) + space)).to.deep.equal([shortBlock]);
  });

  const rejectedTexts: Record<string, string> = {
    'the empty text': '',
    'white space alone': ' \n',
    'a second block with a misspelt beginning': `${block(shortBlock)}${block(longBlock).replace('-----BEGIN', '----BEGIN')}`,
    'a second block without a beginning': `${block(shortBlock)}${longBlock}\n-----END CERTIFICATE-----\n`,
    'an unterminated second block': `${block(shortBlock)}-----BEGIN CERTIFICATE-----\n${longBlock}\n`,
    'a block of another label between text': `text\n${block(shortBlock)}${block(longBlock).replaceAll('CERTIFICATE', 'X509 CRL')}`,
    'a second block with a broken body': `${block(shortBlock)}text\n${block('*')}`,
    'a private key': block(shortBlock).replaceAll('CERTIFICATE', 'PRIVATE KEY'),
    'a key behind a certificate': block(shortBlock) + block(shortBlock).replaceAll('CERTIFICATE', 'PRIVATE KEY'),
    'an unterminated block': block(shortBlock).slice(0, 40),
    'an empty block': block(''),
    'base64 with invalid characters': block(shortBlock.replace('A', '*')),
    'base64 without its padding': block(shortBlock.replace(/=+$/, '')),
    'bytes behind the sequence': der(0x30, 0x01, 0x00, 0x00),
    'a truncated sequence': der(0x30, 0x05, 0x00),
    'another type than a sequence': der(0x04, 0x01, 0x00),
    'an indefinite length': der(0x30, 0x80, 0x00, 0x00),
    'a length that is not minimal': der(0x30, 0x81, 0x01, 0x00),
    'more blocks than allowed': block(shortBlock).repeat(11),
  };
  for (const [name, text] of Object.entries(rejectedTexts)) {
    it(`are rejected: ${name}`, () => {
      expect(parsePemCertificates(text)).to.equal(undefined);
    });
  }
});

describe('certificate profile', () => {
  const NOW = new Date('2026-06-01T12:00:00.789Z');

  it('creates a CA valid for ten years, from the day of five minutes ago', () => {
    const { notBefore, notAfter } = caValidity(NOW);
    expect(notBefore.toISOString()).to.equal('2026-06-01T00:00:00.000Z');
    const afterMidnight = caValidity(new Date('2026-06-01T00:04:00Z')).notBefore;
    expect(afterMidnight.toISOString()).to.equal('2026-05-31T00:00:00.000Z');
    expect(notAfter.toISOString()).to.equal('2036-06-01T11:55:00.000Z');
  });

  it('creates a leaf with the requested validity', () => {
    const { notAfter } = leafValidity(NOW, 365, caValidity(NOW).notAfter);
    expect(notAfter.toISOString()).to.equal('2027-06-01T11:55:00.000Z');
  });

  it('limits a leaf to the expiry of its CA', () => {
    const caNotAfter = new Date('2026-07-01T00:00:00Z');
    expect(leafValidity(NOW, 365, caNotAfter).notAfter).to.deep.equal(caNotAfter);
  });

  for (const days of [0, -1, 1.5, Number.NaN, 4000]) {
    it(`rejects a leaf of ${days} days`, () => {
      expect(() => leafValidity(NOW, days, caValidity(NOW).notAfter)).to.throw(Failure);
    });
  }

  it('names CA and leaf differently within 64 characters', () => {
    const { ca, leaf } = commonNames(`${'ü'.repeat(63)}😀😀`);
    expect(ca).to.match(/^ü{61} CA$/);
    expect([...leaf]).to.have.length(64);
    expect(leaf.endsWith('😀')).to.equal(true);
    expect(commonNames('Acme')).to.deep.equal({ ca: 'Acme CA', leaf: 'Acme' });
  });
});
