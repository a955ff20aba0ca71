import { createSecretKey } from 'node:crypto';
import { expect } from 'chai';
import sinon from 'sinon';
import { renderFailure } from '../../../adapters/http/output/failures.ts';
import { attestationChallenge, isValidChallenge } from '../../../application/oauth/challenges.ts';
import { CreateChallenge } from '../../../application/oauth/create-challenge.ts';
import type { OAuthRequest } from '../../../application/oauth/oauth-callers.ts';
import { parseResponseEncryption } from '../../../domain/issuance/encryption.ts';
import { assertJwtProofClaims, parseJwtProof } from '../../../domain/issuance/proof.ts';
import { assertDpopProofClaims, parseDpopProof } from '../../../domain/oauth/dpop.ts';
import { isChallenge, verifyPkce } from '../../../domain/oauth/pkce.ts';
import { createRefreshToken, parseRefreshToken } from '../../../domain/oauth/refresh-token.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { failureCode } from '../../support/failures.ts';
import { UPSTREAM } from '../../support/fakes.ts';
import { dpopProof, keyProof, newKey, now } from '../../support/raw-wallet.ts';
import { ACME, PUBLIC_URL } from '../verification/kit.ts';
import { AttestedWallet, anOffer, failureOf, outcomeOf, WalletWorld } from '../wallet-kit.ts';

const URL = 'https://issuer.example/acme/token';

const resultOf = (payload: Record<string, unknown>) =>
  failureCode(() =>
    assertDpopProofClaims(parseDpopProof([dpopProof(newKey(), URL, { payload })]), { ...{ method: 'POST', url: URL, now: new Date() } }),
  );

describe('htu of a DPoP proof', () => {
  it('is the URL of the request, in any notation', () => {
    // RFC 9449 section 4.3: without query and fragment
    for (const htu of [`${URL}?a=b#c`, 'HTTPS://Issuer.example:443/acme/x/../%74oken']) {
      expect(resultOf({ htu }), htu).to.equal('accepted');
    }
    for (const htu of [`${URL}s`, 'nonsense']) expect(resultOf({ htu }), htu).to.equal('invalid_dpop_proof');
  });
});

describe('times of a DPoP proof', () => {
  for (const [description, payload] of [
    ['an exp 61 seconds ago', () => ({ exp: now() - 61 })],
    ['an exp that is a string', () => ({ exp: 'later' })],
    ['an exp that is a number in a string', () => ({ exp: `${now() + 60}` })],
    ['a beginning in two minutes', () => ({ nbf: now() + 120 })],
    ['an nbf that is a string', () => ({ nbf: 'soon' })],
  ] as const) {
    it(`reject ${description}`, () => {
      expect(resultOf(payload())).to.equal('invalid_dpop_proof');
    });
  }

  it('may have expired 50 seconds ago, since clocks differ', () => {
    expect(resultOf({ exp: now() - 50 })).to.equal('accepted');
  });

  it('are optional, and accepted if they are valid', () => {
    expect(resultOf({})).to.equal('accepted');
    expect(resultOf({ exp: now() + 60, nbf: now() })).to.equal('accepted');
  });
});

describe('time of a key proof', () => {
  const ISSUER = 'https://issuer.example/acme';

  const resultOf = (iat: number) =>
    failureCode(() =>
      assertJwtProofClaims(parseJwtProof(keyProof(newKey(), ISSUER, 'nonce', { payload: { iat } })), {
        ...{ audience: ISSUER, clientId: undefined, now: new Date() },
      }),
    );

  it('is in the accepted window', () => {
    // OpenID4VCI 1.0 appendix F.4
    expect(resultOf(now() + 90)).to.equal('invalid_proof');
    expect(resultOf(now() - 330)).to.equal('invalid_proof');
    expect([resultOf(now() + 30), resultOf(now() - 270)]).to.deep.equal(['accepted', 'accepted']);
  });
});

describe('key for an encrypted answer', () => {
  const resultOf = (changes: object) => {
    const jwk = { ...newKey().jwk, alg: 'ECDH-ES', ...changes };
    const body = { credential_response_encryption: { jwk, enc: 'A256GCM' } };
    return failureCode(() => parseResponseEncryption(body, { use: 'optional', encrypted: true }));
  };

  it('is rejected if it is a signature key', () => {
    // RFC 7517 section 4.2
    expect(resultOf({ use: 'sig' })).to.equal('invalid_encryption_parameters');
    expect([resultOf({ use: 'enc' }), resultOf({})]).to.deep.equal(['accepted', 'accepted']);
  });
});

describe('errors that are returned to wallets', () => {
  for (const surface of ['oauth', 'vci', 'vp'] as const) {
    it(`has no character that ${surface} does not allow`, () => {
      // OpenID4VCI 1.0 section 8.3.1.2, RFC 6749 section 5.2
      const failure = new Failure('invalid_request', 'the "name" of Löwe\\Bär\n is 名');
      const { body } = renderFailure(failure, { surface }, 'id');
      const { error_description: description } = body as { error_description: string };
      expect(description).to.match(/^[\x20-\x21\x23-\x5b\x5d-\x7e]+$/);
      expect(description).to.include('name').and.include('is');
    });
  }
});

const BROKEN = 'invalid_client_attestation';

/** Attestation-based client authentication, draft 10 sections 5.2 and 7.3. */
describe('DPoP proof in place of a proof of possession', () => {
  let world: WalletWorld;
  let wallet: AttestedWallet;

  beforeEach(async () => {
    world = await WalletWorld.open();
    wallet = await AttestedWallet.make(world);
    await world.putIssuance(wallet.provider.configuration());
  });

  const challenge = (server = wallet.issuer) => attestationChallenge(world, ACME, server, world.clock.now());
  const combinedProof = (
    payload: object = { nonce: challenge() },
    options: Partial<OAuthRequest> = {},
    key = wallet.instance,
  ): OAuthRequest =>
    wallet.createOAuthRequest(
      'token',
      {},
      { attestationPop: [], dpop: [wallet.dpop('token', { key, payload: { ...payload } })], ...options },
    );
  const redeem = async (request: OAuthRequest) => wallet.redeem((await anOffer(world)).code, { request });

  it('is accepted with the attested key and a challenge, and binds the tokens to that key', async () => {
    const answer = await redeem(combinedProof());
    const token = JSON.parse(Buffer.from(answer.body.access_token.split('.')[1] ?? '', 'base64url').toString());
    const normal = await redeem(wallet.createOAuthRequest('token'));
    expect(token.cnf.jkt).to.be.a('string');
    expect(normal.body.access_token).to.be.a('string');
  });

  const rejectedRequests: readonly [string, () => OAuthRequest, string][] = [
    ['under another key', () => combinedProof(undefined, {}, newKey()), BROKEN],
    [
      'signed by another key than it contains',
      () => {
        const [header] = wallet.dpop('token', { key: wallet.instance }).split('.');
        const [, payload, signature] = wallet.dpop('token', { key: newKey(), payload: { nonce: challenge() } }).split('.');
        return combinedProof(undefined, { dpop: [`${header}.${payload}.${signature}`] });
      },
      BROKEN,
    ],
    ['without a challenge', () => combinedProof({}), 'use_attestation_challenge'],
    ['with an invented challenge', () => combinedProof({ nonce: 'x' }), 'use_attestation_challenge'],
    [
      'with the challenge of another server',
      () => combinedProof({ nonce: challenge(`${wallet.issuer}/chained-as`) }),
      'use_attestation_challenge',
    ],
    ['for another address', () => combinedProof({ nonce: challenge(), htu: 'https://x.example' }), 'invalid_dpop_proof'],
    ['that is old', () => combinedProof({ nonce: challenge(), iat: world.seconds - 900 }), 'invalid_dpop_proof'],
    [
      'beside another DPoP proof',
      () => {
        const { dpop } = combinedProof();
        return combinedProof(undefined, { dpop: [...dpop, ...dpop] });
      },
      'invalid_dpop_proof',
    ],
    ['without a proof', () => combinedProof(undefined, { dpop: [] }), BROKEN],
    [
      'beside an attestation of another wallet instance',
      () => combinedProof(undefined, { attestation: [wallet.provider.attestation(newKey())] }),
      BROKEN,
    ],
  ];
  for (const [description, request, code] of rejectedRequests) {
    it(`is rejected ${description}`, async () => {
      expect((await failureOf(redeem(request()))).code).to.equal(code);
    });
  }

  it('gets the challenge as DPoP-Nonce if it has no nonce', async () => {
    const { details } = await failureOf(redeem(combinedProof({})));
    expect(details.dpopNonce).to.equal(details.attestationChallenge);
    expect(await outcomeOf(redeem(combinedProof({ nonce: details.dpopNonce })))).to.equal('done');
  });

  describe('when the challenge is optional', () => {
    const configure = (options: object = {}) =>
      world.putIssuance({ ...wallet.provider.configuration(), attestationChallenge: 'optional', ...options });

    it('is accepted without a nonce, with a DPoP nonce and with a challenge, once each', async () => {
      await configure();
      const { details } = await failureOf(redeem(combinedProof({ nonce: 'x' })));
      for (const payload of [{}, { nonce: details.dpopNonce }, { nonce: challenge() }]) {
        const request = combinedProof(payload);
        expect(await outcomeOf(redeem(request)), JSON.stringify(payload)).to.equal('done');
        expect(await outcomeOf(redeem(request))).to.equal('invalid_dpop_proof');
      }
    });

    it('follows the rule of the tenant for DPoP nonces', async () => {
      await configure({ dPopNonce: 'required' });
      expect(await outcomeOf(redeem(combinedProof({})))).to.equal('use_dpop_nonce');
      await configure({ dPopNonce: 'off' });
      expect(await outcomeOf(redeem(combinedProof({})))).to.equal('done');
      for (const nonce of ['x', 7]) expect(await outcomeOf(redeem(combinedProof({ nonce })))).to.equal('use_attestation_challenge');
    });
  });

  it('is accepted once', async () => {
    const request = combinedProof();
    await redeem(request);
    expect((await failureOf(redeem(request))).code).to.equal('invalid_dpop_proof');
  });

  it('may use another key than the attested one if there is a proof of possession, too', async () => {
    const request = wallet.createOAuthRequest('token', {}, { dpop: [wallet.dpop('token', { key: newKey() })] });
    expect(await outcomeOf(redeem(request))).to.equal('done');
  });

  it('is rejected under a profile of draft 07', async () => {
    await world.changeTenant({ profile: 'haip' });
    const { code, message } = await failureOf(redeem(combinedProof()));
    expect([code, message]).to.deep.equal([BROKEN, 'send exactly one OAuth-Client-Attestation-PoP header']);
  });

  it('binds refreshed tokens to the wallet instance', async () => {
    const { body } = await redeem(combinedProof());
    const refresh = (request: OAuthRequest) => wallet.refresh(body.refresh_token, { request });
    expect((await failureOf(refresh(combinedProof(undefined, {}, newKey())))).code).to.equal(BROKEN);
    expect(await outcomeOf(refresh(combinedProof()))).to.equal('done');
  });
});

describe('CreateChallenge', () => {
  const ISSUER = `${PUBLIC_URL}/acme`;

  let world: WalletWorld;

  before(async () => {
    world = await WalletWorld.open();
    await world.putIssuance({ chainedAs: { upstream: { issuer: UPSTREAM, clientId: 'vidimus' } } });
  });
  afterEach(() => sinon.restore());

  it('creates challenges of one server, for five minutes, without a write', async () => {
    const commit = sinon.spy(world.store, 'commit');
    for (const [server, issuer, alternative] of [
      ['built-in', ISSUER, `${ISSUER}/chained-as`],
      ['chained', `${ISSUER}/chained-as`, ISSUER],
    ] as const) {
      const challenge = await world.createChallenge.execute(ACME, server);
      const isAccepted = (issuer: string, seconds = 0) =>
        isValidChallenge(world.settings, ACME, issuer, challenge, new Date(world.clock.time + seconds * 1000));
      expect([isAccepted(issuer), isAccepted(issuer, 299), isAccepted(issuer, 300), isAccepted(alternative)]).to.deep.equal([
        true,
        true,
        false,
        false,
      ]);
    }
    expect(commit.callCount).to.equal(0);
  });

  it('creates none for a tenant that is unknown or suspended', async () => {
    expect(await outcomeOf(world.createChallenge.execute('unknown' as TenantId, 'built-in'))).to.equal('not_found');
    await world.changeTenant({ status: 'suspended' });
    const otherProcess = new CreateChallenge(world.otherProcess());
    expect(await outcomeOf(otherProcess.execute(ACME, 'built-in'))).to.equal('not_found');
    await world.changeTenant({ status: 'active' });
  });

  it('creates none for a chained server that does not exist', async () => {
    await world.putIssuance();
    const otherProcess = new CreateChallenge(world.otherProcess());
    expect(await outcomeOf(otherProcess.execute(ACME, 'chained'))).to.equal('not_found');
    expect(await outcomeOf(otherProcess.execute(ACME, 'built-in'))).to.equal('done');
  });
});

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

/** Returns other texts that a lenient decoder maps to the same 32 bytes: two bits of the last character are unused. */
function alternativeEncodings(text: string): string[] {
  const last = ALPHABET.indexOf(text.at(-1) ?? '');
  return [1, 2, 3].map((bits) => text.slice(0, -1) + ALPHABET[last | bits]);
}

describe('encoding of base64url values', () => {
  it('is unique for a refresh token', () => {
    const keys = [createSecretKey(Buffer.alloc(32, 7))];
    const token = { grantId: 'a-grant-of-sixteen-or-more', generation: 3 };
    const text = createRefreshToken(keys[0] as (typeof keys)[0], 'tenant', token);
    expect(parseRefreshToken(keys, 'tenant', text)).to.deep.equal(token);
    for (const alternative of alternativeEncodings(text)) expect(parseRefreshToken(keys, 'tenant', alternative)).to.equal(undefined);
  });

  it('is unique for a code challenge', () => {
    // RFC 7636 appendix B
    const verifier = 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk';
    const challenge = 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM';
    expect([isChallenge(challenge), verifyPkce(verifier, challenge)]).to.deep.equal([true, true]);
    for (const alternative of alternativeEncodings(challenge)) {
      expect([isChallenge(alternative), verifyPkce(verifier, alternative)]).to.deep.equal([false, false]);
    }
  });
});
