import { expect } from 'chai';
import { toCertificateView } from '../../../adapters/http/keys/certificate.view.ts';
import { toKeyChainView } from '../../../adapters/http/keys/key-chain.view.ts';
import type { TenantCaller } from '../../../application/caller.ts';
import { CreateCertificate, FindCertificates } from '../../../application/keys/certificates.ts';
import { CreateKeyChain, DeleteKeyChain, UpdateKeyChain } from '../../../application/keys/key-chains.ts';
import { readCertificates } from '../../../application/keys/read-certificates.ts';
import { writePemCertificates } from '../../../domain/formats/der/pem.ts';
import type { KeyChain, KeyUsage } from '../../../domain/keys/key-chain.ts';
import { CertificateCreation, KeyChainCreation } from '../../../domain/keys/key-chain-input.ts';
import { ACME, aWorld, codeOf, type World } from './world.ts';

describe('The key chains of a tenant', () => {
  let world: World;
  let caller: TenantCaller;
  const chainOf = (id: string) => world.store.forTenant(ACME, ({ keyChains }) => keyChains.get(id));

  beforeEach(async () => {
    world = aWorld();
    await world.createTenant();
    caller = world.caller(['issuance:manage', 'presentation:manage']);
  });

  it('are made for one usage or several, and show no private key', async () => {
    const body = KeyChainCreation.parse({ id: 'both', usages: ['signing', 'access', 'signing'] });
    const chain = await new CreateKeyChain(world).execute(caller, body);
    expect(toKeyChainView(chain)).to.deep.include({ usages: ['signing', 'access'], usageType: 'signing' });
    expect(JSON.stringify(toKeyChainView(chain))).to.not.match(/"d"|sealed/);
    expect(JSON.stringify(toCertificateView(chain, [chain]))).to.not.match(/"d"|sealed/);
    expect(await codeOf(new CreateKeyChain(world).execute(caller, body))).to.equal('conflict');
  });

  it('refuse names of addresses, and two ways to say the usage', () => {
    const refused = [
      { id: 'providers', usageType: 'access' },
      { usageType: 'access', usages: ['access'] },
      {},
    ];
    for (const body of refused) expect(KeyChainCreation.safeParse(body).success).to.equal(false);
  });

  it('stay while a configuration names them', async () => {
    const now = world.clock.now();
    await world.store.forTenant(
      ACME,
      ({ presentationConfigurations }) =>
        presentationConfigurations.put({
          id: 'age',
          accessKeyChainId: 'access',
          trustAnchors: [{ keyChainId: 'signing' }],
          createdAt: now,
          updatedAt: now,
        } as unknown as Parameters<typeof presentationConfigurations.put>[0]),
      { by: 'system' },
    );
    const remove = new DeleteKeyChain(world);
    expect(await codeOf(remove.execute(caller, 'access'))).to.equal('conflict');
    expect(await codeOf(remove.execute(caller, 'signing'))).to.equal('conflict');
    expect(await codeOf(remove.execute(caller, 'nothing'))).to.equal('not_found');
    await remove.execute(caller, 'trust-list');
    const update = new UpdateKeyChain(world);
    expect(await codeOf(update.execute(caller, 'access', { usages: ['signing'] }))).to.equal('conflict');
    const usages: KeyUsage[] = ['signing', 'trustList'];
    const wider = await update.execute(caller, 'signing', { usages, description: 'x' });
    expect(wider).to.deep.include({ usages, description: 'x' });
    expect(await update.execute(caller, 'signing', { description: null })).to.not.have.property(
      'description',
    );
  });

  it('give one key several certificates, which go by the name of the first', async () => {
    world.clock.forward(1);
    const body = CertificateCreation.parse({ keyId: 'signing', certUsageTypes: ['trustList'], id: 'again' });
    const { chain } = await new CreateCertificate(world).execute(caller, body);
    const first = await chainOf('signing');
    expect(chain.active.key).to.deep.equal(first.active.key);
    expect(chain.active.certificates).to.not.deep.equal(first.active.certificates);
    for (const keyId of ['signing', 'again']) {
      const { found, all } = await new FindCertificates(world).execute(caller, { keyId });
      const views = found.map((one) => toCertificateView(one, all));
      expect(views.map(({ id }) => id)).to.have.members(['signing', 'again']);
      expect(views.map((view) => view.keyId)).to.deep.equal(['signing', 'signing']);
    }
    const unknown = CertificateCreation.parse({ keyId: 'nothing', certUsageTypes: ['access'] });
    expect(await codeOf(new CreateCertificate(world).execute(caller, unknown))).to.equal('not_found');
  });

  describe('with certificates from elsewhere', () => {
    let chain: KeyChain;
    const pem = (...certificates: (string | undefined)[]) =>
      writePemCertificates(certificates.filter((one) => one !== undefined));
    const read = (text: string | string[], changes: { chain?: KeyChain; now?: Date } = {}) =>
      codeOf(() =>
        readCertificates(
          text,
          { key: (changes.chain ?? chain).active.key.publicJwk, usages: ['signing'] },
          changes.now ?? world.clock.now(),
        ),
      );

    beforeEach(async () => {
      chain = await chainOf('signing');
    });

    it('take the leaf and its issuer in order, and leave the root out', () => {
      const [leaf] = chain.active.certificates;
      const root = chain.root?.certificate;
      const { certificates, notAfter } = readCertificates(
        [pem(leaf), pem(root)],
        { key: chain.active.key.publicJwk, usages: ['signing'] },
        world.clock.now(),
      );
      expect(certificates).to.deep.equal([leaf]);
      expect(notAfter).to.deep.equal(chain.active.notAfter);
    });

    it('refuse another key, another order, another issuer, expiry, a self-signed leaf and noise', async () => {
      const other = await chainOf('access');
      const [leaf] = chain.active.certificates;
      const root = chain.root;
      expect(await read(pem(leaf))).to.equal(undefined);
      expect(await read(pem(other.active.certificates[0]))).to.equal('invalid_input');
      expect(await read(pem(root?.certificate, leaf))).to.equal('invalid_input');
      expect(await read(pem(leaf, other.root?.certificate))).to.equal('invalid_input');
      expect(await read(pem(leaf), { now: chain.active.notAfter })).to.equal('invalid_input');
      expect(await read(pem(leaf), { now: new Date('2020-01-01') })).to.equal('invalid_input');
      expect(await read('no certificate')).to.equal('invalid_input');
      if (root === undefined) throw new Error('no root');
      const selfSigned = { ...chain, active: { ...chain.active, key: root.key } };
      expect(await read(pem(root.certificate), { chain: selfSigned })).to.equal('invalid_input');
    });
  });
});
