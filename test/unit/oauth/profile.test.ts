import { expect } from 'chai';
import { DpopProofs } from '../../../application/oauth/dpop-proofs.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import { dpopProof, newKey } from '../../support/raw-wallet.ts';
import { ClientWorld, SERVER, type Sent } from './kit.ts';

describe('A profile', () => {
  let client: ClientWorld;

  before(async () => {
    client = await ClientWorld.make();
  });

  const following = (profile: 'haip' | null) => client.configure({}, profile);

  const unnamed = { payload: { iss: undefined } };
  const tokens: readonly (readonly [string, Sent, string])[] = [
    ['whose tokens say who made them', {}, 'attested'],
    ['whose attestation does not say who made it', { attestation: unnamed }, 'invalid_client_attestation'],
    ['whose proof does not say who made it', { pop: unnamed }, 'invalid_client_attestation'],
    ['with an empty iss', { attestation: { payload: { iss: '' } } }, 'invalid_client_attestation'],
  ];
  for (const [what, sent, outcome] of tokens) {
    it(`of HAIP judges a wallet ${what}`, async () => {
      following('haip');
      expect(await client.outcome(sent)).to.equal(outcome);
      following(null);
      expect(await client.outcome(sent)).to.equal('attested');
    });
  }

  it('of HAIP demands a nonce in DPoP proofs, whatever is configured', async () => {
    const proofs = new DpopProofs({ ...client.world, settings: client.settings });
    const expected = { method: 'POST', url: `${SERVER}/token`, issuer: SERVER, now: client.now };
    const iat = Math.floor(client.now.getTime() / 1000);
    const check = async (profile: 'haip' | null) => {
      try {
        await proofs.check(
          following(profile),
          [dpopProof(newKey(), expected.url, { payload: { iat } })],
          expected,
        );
      } catch (error) {
        if (error instanceof Failure) return error.code;
        throw error;
      }
      return 'taken';
    };
    expect([await check(null), await check('haip')]).to.deep.equal(['taken', 'use_dpop_nonce']);
  });
});
