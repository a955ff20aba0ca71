import { X509Certificate } from 'node:crypto';
import { expect } from 'chai';
import { MasterCipher } from '../../../adapters/crypto/cipher.ts';
import { X509Authority } from '../../../adapters/crypto/x509-authority.ts';
import { KmsRegistry } from '../../../adapters/kms/kms-registry.ts';
import { LocalKms } from '../../../adapters/kms/local/local-kms.ts';
import { NodeRandom } from '../../../adapters/system/random.ts';
import { makeKeyChain } from '../../../application/keys/make-key-chain.ts';
import { Clock } from '../../../application/ports/clock.ts';
import {
  checkDocumentSigner,
  MDL_DOCUMENT_SIGNER,
  readDocumentSigner,
} from '../../../domain/formats/mdoc/document-signer.ts';
import { documentSignerChain, type KeyChain, signingChain } from '../../../domain/keys/key-chain.ts';
import { keyChainFindings } from '../../../domain/keys/key-chain-findings.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { SIGNING_ALGORITHMS } from '../../../domain/shared/jwk.ts';
import { NO_ORGANIZATION } from '../../../domain/tenants/organization.ts';

class StoppedClock extends Clock {
  override now(): Date {
    return new Date('2026-06-01T12:00:00Z');
  }
}

function read(base64: string | undefined): X509Certificate {
  return new X509Certificate(Buffer.from(base64 ?? '', 'base64'));
}

describe('makeKeyChain', () => {
  const random = new NodeRandom();
  const cipher = new MasterCipher({ masterSecrets: ['a master secret of decent length'] });
  const provider = new LocalKms({ name: 'local', cipher, random });
  let made = 0;
  class CountingKms extends KmsRegistry {
    override generate(...wanted: Parameters<KmsRegistry['generate']>) {
      made++;
      return super.generate(...wanted);
    }
  }
  const kms = new CountingKms({ providers: [{ name: 'local', type: 'local', provider }], default: 'local' });
  const ports = {
    kms,
    random,
    clock: new StoppedClock(),
    certificateAuthority: new X509Authority({ kms, random }),
  };
  const wanted = {
    tenantId: 'acme',
    usages: ['signing'],
    subjectName: 'Acme',
    publicUrl: 'https://issuer.example',
    holder: NO_ORGANIZATION,
  } as const;

  for (const algorithm of SIGNING_ALGORITHMS) {
    it(`makes a CA and a leaf that it certifies, with ${algorithm}`, async () => {
      const chain = await makeKeyChain(ports, { ...wanted, algorithm });
      const [ca, leaf] = [read(chain.root?.certificate), read(signingChain(chain)[0])];
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

  it('certifies a key that signs credentials as a document signer of mdocs, too, in a certificate of its own', async () => {
    const chain = await makeKeyChain(ports, wanted);
    const [plain = '', signer = ''] = [signingChain(chain)[0], documentSignerChain(chain)[0]];
    expect(read(signer).checkIssued(read(chain.root?.certificate))).to.equal(true);
    expect(read(signer).publicKey.equals(read(plain).publicKey)).to.equal(true);
    expect(() => checkDocumentSigner(readDocumentSigner(signer), MDL_DOCUMENT_SIGNER)).to.not.throw();
    expect(readDocumentSigner(plain).usages).to.equal(undefined);
    const access = await makeKeyChain(ports, { ...wanted, usages: ['access', 'statusList'] });
    expect(access.active).to.not.have.property('documentSigner');
  });

  it('makes certificates in which readers miss nothing, and are told what they miss in others', async () => {
    const holder = { organizationIdentifier: 'VATDE-123456789', contact: 'mailto:trust@acme.example' };
    const said = { ...wanted, holder, organization: 'Acme', country: 'DE' };
    const brought = ({ root: _root, ...chain }: KeyChain, certificates: readonly string[]) =>
      keyChainFindings({ ...chain, active: { ...chain.active, certificates } }, null);
    const signing = await makeKeyChain(ports, said);
    expect(brought(signing, documentSignerChain(signing))).to.deep.equal([]);
    const access = await makeKeyChain(ports, { ...said, usages: ['access'] });
    expect(brought(access, signingChain(access))).to.deep.equal([]);

    const bare = await makeKeyChain(ports, {
      ...wanted,
      usages: ['signing', 'access'],
      certValidityDays: 500,
    });
    const [signer, reader, shared, ...others] = brought(bare, signingChain(bare));
    expect(others).to.deep.equal([]);
    expect(shared).to.include({ rule: 'ETSI TS 119 602 annexes D and F', member: 'usages' });
    expect(reader).to.include({ profileRule: 'ETSI TS 119 411-8 section 6.6.1', member: 'certificates' });
    expect(signer).to.include({ rule: 'ISO/IEC 18013-5 table B.3', member: 'certificates' });
    expect(signer?.change).to.equal(
      'ask its authority for one with a country, the extended key usage 1.0.18013.5.1.2, critical, an end within 457 days',
    );
    expect(reader?.change).to.equal(
      'ask its authority for one with a country, an organization identifier, a certificate policy',
    );
  });

  it('fills in what was not said', async () => {
    const chain = await makeKeyChain(ports, wanted);
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
    const named = await makeKeyChain(ports, {
      ...wanted,
      id: 'main',
      description: 'PID',
      certValidityDays: 30,
    });
    expect(named).to.include({ id: 'main', description: 'PID', certValidityDays: 30 });
  });

  it('makes no key when the request is refused', async () => {
    const before = made;
    const outcome = await makeKeyChain(ports, { ...wanted, certValidityDays: 0 }).catch((e: unknown) => e);
    expect(outcome).to.be.instanceOf(Failure).with.property('code', 'invalid_input');
    expect(made).to.equal(before);
  });
});
