import { expect } from 'chai';
import type { AuthorizationServer } from '../../../domain/oauth/grant.ts';
import {
  AUTHORIZATION_CODE_GRANT,
  PRE_AUTHORIZED_CODE_GRANT,
  REFRESH_TOKEN_GRANT,
} from '../../../domain/oauth/token-request.ts';
import type { FailureCode } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { AUTHORIZATION_REQUEST, CODE_VERIFIER } from '../../support/raw-wallet.ts';
import { ACME } from '../verification-flow/kit.ts';
import { anOffer, Wallet } from '../wallet.ts';
import { endOf, WalletWorld } from '../wallet-kit.ts';

const { client_id, redirect_uri } = AUTHORIZATION_REQUEST;

describe('AnswerTokenRequest', () => {
  let world: WalletWorld;
  let wallet: Wallet;

  before(async () => {
    world = await WalletWorld.open();
    wallet = new Wallet(world);
  });

  const answer = (form: Record<string, string>, server: AuthorizationServer = 'built-in', tenantId = ACME) =>
    world.answerTokenRequest.execute(tenantId, server, wallet.oauth('token', form));
  const preAuthorized = async () => ({
    grant_type: PRE_AUTHORIZED_CODE_GRANT,
    'pre-authorized_code': (await anOffer(world)).code,
  });

  it('redeems a pre-authorized code, and refreshes what it brought', async () => {
    const { body } = await answer(await preAuthorized());
    const refresh = { grant_type: REFRESH_TOKEN_GRANT, refresh_token: body.refresh_token ?? '' };
    const refreshed = await answer(refresh);
    expect(refreshed.body.access_token).to.be.a('string').that.is.not.equal(body.access_token);
  });

  it('redeems an authorization code', async () => {
    const { session } = await anOffer(world, { flow: 'authorization_code' });
    const code = await wallet.approve(await wallet.push({ issuer_state: session.publicId }));
    const form = { grant_type: AUTHORIZATION_CODE_GRANT, code, client_id, redirect_uri };
    const { body } = await answer({ ...form, code_verifier: CODE_VERIFIER });
    expect(body.scope).to.equal('card');
  });

  type Changes = Record<string, string | undefined>;
  const refusals: readonly [
    what: string,
    code: FailureCode,
    changes: Changes,
    server?: AuthorizationServer,
  ][] = [
    ['no grant', 'invalid_request', { grant_type: undefined }],
    ['the grant of a password', 'unsupported_grant_type', { grant_type: 'password' }],
    ['a pre-authorized code at the chained server', 'unsupported_grant_type', {}, 'chained'],
    ['no code', 'invalid_request', { 'pre-authorized_code': undefined }],
    ['no authorization code', 'invalid_request', { grant_type: AUTHORIZATION_CODE_GRANT }],
    ['no refresh token', 'invalid_request', { grant_type: REFRESH_TOKEN_GRANT }],
    [
      'a transaction code of another grant',
      'invalid_request',
      { grant_type: REFRESH_TOKEN_GRANT, tx_code: '1234' },
    ],
    ['details that are no list', 'invalid_authorization_details', { authorization_details: '{}' }],
    ['details of another type', 'invalid_authorization_details', { authorization_details: '[{"type":"x"}]' }],
  ];
  for (const [what, code, changes, server] of refusals) {
    it(`refuses ${what}, and nothing is spent`, async () => {
      const form = await preAuthorized();
      const all = Object.entries({ ...form, ...changes });
      const sent = Object.fromEntries(
        all.filter((entry): entry is [string, string] => entry[1] !== undefined),
      );
      expect(await endOf(answer(sent, server))).to.equal(code);
      expect(await endOf(answer(form))).to.equal('done');
    });
  }

  it('tells nobody what is wrong with a request to a tenant that is unknown or suspended', async () => {
    const nobody = 'nobody' as TenantId;
    expect(await endOf(answer({}, 'built-in', nobody))).to.equal('not_found');
    expect(await endOf(answer(await preAuthorized(), 'built-in', nobody))).to.equal('not_found');
    const form = await preAuthorized();
    await world.change({ status: 'suspended' });
    expect([await endOf(answer({})), await endOf(answer(form))]).to.deep.equal(['not_found', 'not_found']);
    await world.change({ status: 'active' });
  });
});
