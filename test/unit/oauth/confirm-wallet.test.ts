import { expect } from 'chai';
import type { Confirmation } from '../../../application/oauth/confirm-wallet.ts';
import type { Consent } from '../../../application/oauth/consents.ts';
import { hashCode } from '../../../application/oauth/redeem-grant.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { AUTHORIZATION_REQUEST } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { endOf } from '../wallet-kit.ts';
import { LoginWorld } from './upstream-kit.ts';

describe('ConfirmWallet', () => {
  let logins: LoginWorld;

  before(async () => {
    logins = await LoginWorld.open();
  });

  /** A user who logged in and is asked about the wallet. */
  const asked = async () => {
    const login = await logins.start();
    const { fields } = (await logins.finish(login)) as Consent;
    return { ...login, confirmation: fields['confirmation'] };
  };
  type Asked = Awaited<ReturnType<typeof asked>>;
  const confirm = (
    { confirmation, browserSecrets }: Asked,
    changes: Partial<Confirmation> = {},
    tenantId = ACME,
  ) =>
    logins.world.confirmWallet.execute(tenantId, {
      decision: 'approve',
      confirmation,
      browserSecrets,
      ...changes,
    });

  it('ends an approval with a code for who logged in, whom nobody remembers any more here', async () => {
    const page = await asked();
    const { location, authorizationId } = await confirm(page);
    const { code = '', ...rest } = logins.told(location);
    expect([rest, authorizationId]).to.deep.equal([
      { state: AUTHORIZATION_REQUEST.state, iss: logins.server },
      page.id,
    ]);
    const grant = (await logins.world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    expect(grant?.authorization?.identity?.sub).to.equal('ada');
    const done = await logins.stored(page.id);
    expect(done).to.deep.include({ stage: 'done', handles: {} });
    expect(done).not.to.have.property('identity');
  });

  it('ends a refusal with an error', async () => {
    const page = await asked();
    const { location } = await confirm(page, { decision: 'deny' });
    expect(logins.told(location)).to.deep.equal(logins.refusal('access_denied'));
    expect(await logins.stored(page.id)).to.deep.include({ stage: 'done', handles: {} });
    expect(await endOf(confirm(page))).to.equal('invalid_request');
  });

  it('tells the wallet that the offer is over', async () => {
    const page = await asked();
    await logins.end(page);
    const { location } = await confirm(page);
    expect(logins.told(location)).to.deep.equal(logins.refusal('access_denied'));
  });

  it('takes one of two answers that come at the same time', async () => {
    const page = await asked();
    const ends = await Promise.all([endOf(confirm(page)), endOf(confirm(page, { decision: 'deny' }))]);
    expect(ends.sort()).to.deep.equal(['done', 'invalid_request']);
  });

  const bends: readonly [what: string, bend: (page: Asked) => Partial<Confirmation>][] = [
    ['no decision', () => ({ decision: undefined })],
    ['another decision', () => ({ decision: 'perhaps' })],
    ['no name of a page', () => ({ confirmation: undefined })],
    ['a page of nobody', () => ({ confirmation: 'unknown' })],
    ['a page with another secret', ({ confirmation }) => ({ confirmation: `${confirmation}A` })],
    [
      'the state of the login',
      ({ location }) => ({ confirmation: location.searchParams.get('state') ?? '' }),
    ],
    ['another browser', ({ id }) => ({ browserSecrets: new Map([[id, 'another']]) })],
    ['a browser without its secret', () => ({ browserSecrets: new Map() })],
  ];
  for (const [what, bend] of bends) {
    it(`refuses ${what}, and the page can still be answered`, async () => {
      const page = await asked();
      expect(await endOf(confirm(page, bend(page)))).to.equal('invalid_request');
      expect(await endOf(confirm(page))).to.equal('done');
    });
  }

  it('is over after half an hour', async () => {
    const page = await asked();
    expect(await logins.world.later(1800, () => endOf(confirm(page)))).to.equal('invalid_request');
  });

  it('is not found once the tenant has no such server, or at one that is not there', async () => {
    const page = await asked();
    expect(await endOf(confirm(page, {}, 'nobody' as TenantId))).to.equal('not_found');
    await logins.configure({ enabled: false });
    expect(await endOf(confirm(page))).to.equal('not_found');
    await logins.configure();
    expect(await endOf(confirm(page))).to.equal('done');
  });
});
