import { expect } from 'chai';
import sinon from 'sinon';
import { decode } from '../../support/present.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const ONCE = { details: ['once_only'], batch_size: 6, reissue_trigger_unused: 1 };
const LIMITED = { details: ['limited_time'], reissue_trigger_lifetime_left: 60 };
const policy = (...options: object[]) => ({ id: 'arf_annex_ii', options });

describe('A batch of a configuration with a reuse policy', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    await world.issues({ batchSize: 3 });
    await world.offers({ id: 'once', statusManagement: true, credentialReusePolicy: policy(ONCE) });
    await world.offers({ id: 'limited', lifeTime: 86_400, credentialReusePolicy: policy(LIMITED) });
    wallet = new Wallet(world);
  });
  afterEach(() => sinon.restore());

  const asking = async (id: string, count: number) => {
    const token = await wallet.token(await anOffer(world, { credentialConfigurationIds: [id] }));
    const nonce = await wallet.nonce();
    const jwt = Array.from({ length: count }, () => wallet.keyProof(nonce));
    return wallet.issue(token, { credential_configuration_id: id, proofs: { jwt } });
  };
  const indices = (issued: Awaited<ReturnType<typeof asking>>) =>
    issued.credentials.map(({ credential }) => {
      const { status } = decode(credential).payload as { status: { status_list: { idx: number } } };
      return status.status_list.idx;
    });

  it('has as many copies as the policy says, whatever the issuer says of others', async () => {
    expect((await asking('once', 6)).credentials).to.have.length(6);
    expect(await endOf(asking('once', 7))).to.equal('invalid_credential_request');
    expect((await asking('limited', 1)).credentials).to.have.length(1);
    expect(await endOf(asking('limited', 2))).to.equal('invalid_credential_request');
    expect((await asking('card', 3)).credentials).to.have.length(3);
    expect(await endOf(asking('card', 4))).to.equal('invalid_credential_request');
  });

  it('takes other entries where chance put them in order, and gives those back', async () => {
    const allocate = sinon.stub(world.statusAllocator, 'allocate').callThrough();
    const giveBack = sinon.spy(world.statusAllocator, 'giveBack');
    allocate.onFirstCall().callsFake(async (...args) => {
      const entries = await allocate.wrappedMethod.apply(world.statusAllocator, args);
      return { ...entries, indices: entries.indices.toSorted((one, other) => one - other) };
    });
    const places = indices(await asking('once', 6));
    expect(places).to.not.deep.equal(places.toSorted((one, other) => one - other));
    expect([allocate.callCount, giveBack.callCount]).to.deep.equal([2, 1]);
  });

  it('is not issued from entries that stay together', async () => {
    const allocate = sinon
      .stub(world.statusAllocator, 'allocate')
      .callsFake(async (_configured, _configuration, count) => ({
        ...{ listId: 'list', uri: 'https://list.example', capacity: 100_000, firstCounter: 0 },
        indices: Array.from({ length: count }, (_, index) => (index * 7) % 50),
      }));
    const giveBack = sinon.stub(world.statusAllocator, 'giveBack');
    expect(await endOf(asking('once', 6))).to.equal('credential_request_denied');
    expect(giveBack.callCount).to.equal(allocate.callCount).and.be.above(2);
  });
});
