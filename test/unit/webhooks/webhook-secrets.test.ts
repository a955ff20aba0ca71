import { expect } from 'chai';
import type { TenantCaller } from '../../../application/caller.ts';
import {
  GetWebhookSecret,
  RotateWebhookSecret,
  UpdateWebhookSecret,
} from '../../../application/webhooks/webhook-secrets.ts';
import { type AdministrationWorld, anAdministration } from '../administration/kit.ts';

describe('The secret of webhooks', () => {
  let world: AdministrationWorld;
  let caller: TenantCaller;
  const get = () => new GetWebhookSecret(world).execute(caller);
  const rotate = (wanted: { overlapSeconds?: number } = {}) =>
    new RotateWebhookSecret(world).execute(caller, wanted);
  const update = (signing: 'v1' | 'off') => new UpdateWebhookSecret(world).execute(caller, { signing });

  beforeEach(async () => {
    world = await anAdministration();
    caller = world.caller(['issuance:manage', 'presentation:manage']);
  });

  it('is changed by nobody who has one side alone: it signs what both tell backends', async () => {
    for (const role of ['issuance:manage', 'presentation:manage'] as const) {
      caller = world.caller([role]);
      for (const attempt of [rotate, () => update('off')]) {
        const refused = await attempt().catch((error: unknown) => error);
        expect(refused, role).to.include({ code: 'forbidden' });
      }
      expect((await get()).stored.signing).to.equal('v1');
    }
  });

  it('signs before anybody was told one', async () => {
    const { stored, signing } = await get();
    expect([stored.signing, stored.current, signing]).to.deep.equal(['v1', undefined, []]);
  });

  it('is told by its rotation, and signs beside the next one until the overlap is over', async () => {
    const first = await rotate();
    expect(first.secret).to.match(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(first.signing, 'nobody knew another').to.deep.equal([]);
    const second = await rotate({ overlapSeconds: 60 });
    expect(second.secret).to.not.equal(first.secret);
    expect((await get()).signing.map(({ secret }) => secret)).to.deep.equal([first.secret]);
    world.clock.forward(61_000);
    expect((await get()).signing).to.deep.equal([]);
  });

  it('ends former ones where there is no overlap', async () => {
    await rotate();
    await rotate();
    const { secret } = await rotate({ overlapSeconds: 0 });
    const { stored, signing } = await get();
    expect([stored.current?.secret, signing]).to.deep.equal([secret, []]);
  });

  it('is kept when signing is switched off and on', async () => {
    const { secret } = await rotate();
    expect((await update('off')).stored.signing).to.equal('off');
    const { stored } = await update('v1');
    expect([stored.signing, stored.current?.secret]).to.deep.equal(['v1', secret]);
  });
});
