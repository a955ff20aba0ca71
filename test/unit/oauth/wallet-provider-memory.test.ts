import { expect } from 'chai';
import sinon from 'sinon';
import { ConfigurationMemory } from '../../../application/configuration-memory.ts';
import { ClientWorld } from './kit.ts';

// Reading certificates takes longer than all else that is asked of a trusted provider.
describe('whom the lists of wallet providers trust', () => {
  it('is gathered once for all requests of a configuration, and anew for another', async () => {
    const client = await ClientWorld.make();
    const { certificates } = client.world;
    const validate = sinon.spy(certificates, 'validate');
    const memory = new ConfigurationMemory();
    const { attestation = '' } = client.credentials();
    const [header = ''] = String(attestation).split('.');
    const { x5c } = JSON.parse(Buffer.from(header, 'base64url').toString());
    const anchorsOf = async (kept: ConfigurationMemory) => {
      const configured = client.configure({}, null, kept);
      const verdict = await client.walletProviderTrust.check(configured, x5c, client.now);
      expect(verdict.trusted).to.equal(true);
      const [, anchors] = validate.lastCall.args;
      return anchors;
    };
    const first = await anchorsOf(memory);
    expect(await anchorsOf(memory)).to.equal(first);
    expect(await anchorsOf(new ConfigurationMemory())).to.not.equal(first);
  });
});
