import { expect } from 'chai';
import { OpenRequests, ServeDcApiRequest } from '../../../application/verification/serve-request-object.ts';
import type { Session } from '../../../domain/sessions/session.ts';
import { answered } from '../../../domain/sessions/session-change.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { PublicId, TenantId } from '../../../domain/shared/ids.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { decode } from '../../support/present.ts';
import { rememberedCaller } from '../../support/remembered-caller.ts';
import { endOf } from '../wallet-kit.ts';
import { ACME, World } from './kit.ts';

const ORIGIN = 'https://shop.example';

describe('ServeDcApiRequest', () => {
  let world: World;
  let serve: ServeDcApiRequest;

  before(async () => {
    world = await World.make();
    serve = new ServeDcApiRequest({ openRequests: new OpenRequests(world) });
    await world.configure({ expectedOrigins: [ORIGIN] });
    await world.configure({ id: 'unsigned', expectedOrigins: [ORIGIN], dcApiRequest: 'unsigned' });
  });

  const ask = async (changes: object = {}): Promise<Session> => {
    const body = { response_type: 'dc-api', requestId: 'card', ...changes } as const;
    const caller = rememberedCaller(await world.caller());
    const { session } = await world.createPresentationRequest.execute(caller, body);
    return world.session(session);
  };
  const execute = (publicId: PublicId, tenantId = ACME) => serve.execute(tenantId, publicId);
  const only = ({ requests }: JsonObject) => (requests as { protocol: string; data: JsonObject }[])[0];

  it('hands a signed request to the page, the same each time, and notes the first time', async () => {
    const { publicId, id } = await ask();
    const served = await execute(publicId);
    const request = only(served);
    expect(request?.protocol).to.equal('openid4vp-v1-signed');
    const { payload } = decode(String(request?.data['request']));
    expect(payload).to.deep.include({ expected_origins: [ORIGIN], response_mode: 'dc_api.jwt' });
    expect(await world.session(id)).to.deep.include({ status: 'fetched', version: 2 });
    expect(await execute(publicId)).to.deep.equal(served);
    expect((await world.session(id)).version).to.equal(2);
  });

  it('hands out an unsigned request as its parameters', async () => {
    const request = only(await execute((await ask({ requestId: 'unsigned' })).publicId));
    expect(request?.protocol).to.equal('openid4vp-v1-unsigned');
    expect(request?.data).to.have.property('dcql_query');
  });

  type Refused = readonly [what: string, code: FailureCode, meet: (session: Session) => Promise<unknown>];
  const refusals: readonly Refused[] = [
    ['a request of nobody', 'not_found', () => execute('unknown' as PublicId)],
    ['a request of another tenant', 'not_found', ({ publicId }) => execute(publicId, 'nobody' as TenantId)],
    ['a request for a wallet', 'not_found', async () => execute((await world.request()).publicId)],
    [
      'a request whose time is over',
      'gone',
      async ({ publicId, expiresAt }) => {
        const now = world.clock.time;
        world.clock.time = expiresAt.getTime();
        return execute(publicId).finally(() => {
          world.clock.time = now;
        });
      },
    ],
    [
      'a request that was answered',
      'gone',
      async (session) => {
        await world.store.commit(ACME, { session: answered(session, 'complete', {}) }, world.clock.now());
        return execute(session.publicId);
      },
    ],
    [
      'a request that another process ended, while this one remembers it',
      'gone',
      async ({ publicId, id }) => {
        const failed = { id, anytime: ['active'], to: 'failed' } as const;
        await world.store.commit(ACME, { session: failed }, world.clock.now());
        return execute(publicId);
      },
    ],
    [
      'a request whose key was taken away',
      'gone',
      async ({ publicId }) => {
        const chain = await world.store.forTenant(ACME, (own) => own.keyChains.get('access'));
        await world.store.forTenant(ACME, (own) => own.keyChains.remove('access'), { by: 'system' });
        return execute(publicId).finally(() =>
          world.store.forTenant(ACME, (own) => own.keyChains.add(chain), { by: 'system' }),
        );
      },
    ],
  ];
  for (const [what, code, meet] of refusals) {
    it(`refuses ${what}`, async () => {
      expect(await endOf(meet(await ask()))).to.equal(code);
    });
  }
});
