import { expect } from 'chai';
import type { Confirmation } from '../../../application/oauth/confirm-wallet.ts';
import type { Consent } from '../../../application/oauth/consents.ts';
import { hashCode } from '../../../application/oauth/pre-authorized-code-grant.ts';
import {
  type Authorization,
  type AuthorizationStage,
  advance,
  handleOfRequestUri,
  isCurrentHandle,
  NEXT_STAGES,
  REQUEST_URI_PREFIX,
  wasOpenedInBrowser,
} from '../../../domain/oauth/authorization.ts';
import { parseAuthorizationRequest } from '../../../domain/oauth/authorization-request.ts';
import { authorizationResponse, redirectDestination } from '../../../domain/oauth/authorization-response.ts';
import { createHandle, hashSecret, isSecret, parseHandle } from '../../../domain/oauth/handle.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { failureCode } from '../../support/failures.ts';
import { AUTHORIZATION_REQUEST } from '../../support/raw-wallet.ts';
import { ACME } from '../verification/kit.ts';
import { outcomeOf } from '../wallet-kit.ts';
import { LoginWorld } from './kit.ts';

const STAGES = Object.keys(NEXT_STAGES) as AuthorizationStage[];

describe('authorization state', () => {
  for (const stage of STAGES) {
    for (const next of STAGES) {
      const isAllowed = (NEXT_STAGES[stage] as readonly string[]).includes(next);
      it(`${stage} ${isAllowed ? 'changes' : 'never changes'} to ${next}`, () => {
        const move = () => advance({ stage, version: 3 } as Authorization, { stage: next });
        if (isAllowed) expect(move()).to.include({ stage: next, version: 4 });
        else expect(move).to.throw(`cannot change to ${next}`);
      });
    }
  }

  it('has no interaction at its end without one before', () => {
    expect(advance({ stage: 'pushed', version: 1 } as Authorization, { stage: 'done' })).to.deep.equal({ stage: 'done', version: 2 });
  });

  it('is opened by the first browser, with its request or to a page', () => {
    const web = { kind: 'web', browserHash: 'h' };
    const isOpenedInBrowser = (pending: object | undefined, isOpened?: boolean) =>
      wasOpenedInBrowser({ isOpened, interaction: { pending } } as unknown as Authorization);
    expect([isOpenedInBrowser(web), isOpenedInBrowser(undefined, true), isOpenedInBrowser({ kind: 'web' }, true)]).to.deep.equal(
      Array(3).fill(true),
    );
    expect([isOpenedInBrowser({ kind: 'web' }), isOpenedInBrowser({ kind: 'presentation' }), isOpenedInBrowser(undefined)]).to.deep.equal(
      Array(3).fill(false),
    );
  });
});

describe('handle of an authorization', () => {
  const [id, secret] = ['i'.repeat(16), 's'.repeat(20)];
  const now = new Date('2026-06-01T12:00:00Z');
  const later = new Date('2026-06-01T12:00:01Z');
  const currentAuthorization = { id, stage: 'opened', expiresAt: later, handles: { page: hashSecret(secret) } };
  const current = (changes: object = {}, handle = createHandle(id, secret)) =>
    isCurrentHandle({ ...currentAuthorization, ...changes } as unknown as Authorization, 'page', handle, now);

  it('is valid for its purpose until the authorization ends', () => {
    expect(current()).to.equal(true);
    const otherHandle = createHandle('j'.repeat(16), secret);
    const outdated = [
      current({ stage: 'done' }),
      current({ expiresAt: now }),
      current({ handles: {} }),
      current({}, otherHandle),
      current({}, createHandle(id, 't'.repeat(20))),
      current({}, 'nonsense'),
      isCurrentHandle(undefined, 'page', otherHandle, now),
    ];
    expect(outdated).to.deep.equal(Array(7).fill(false));
  });

  it('is read only from a request URI of this service', () => {
    expect(handleOfRequestUri(`${REQUEST_URI_PREFIX}x`)).to.equal('x');
    expect(() => handleOfRequestUri('https://wallet.example/request')).to.throw('unknown, expired or used');
  });

  it('consists of an id and a secret', () => {
    expect(parseHandle(createHandle(id, secret))).to.deep.equal({ id, secret });
    for (const text of ['', 'nonsense', `${id}.`, `${id}.short`, ` ${id}.${secret}`]) {
      expect(parseHandle(text), text).to.equal(undefined);
    }
    expect([isSecret(secret, undefined), isSecret(secret, 'short')]).to.deep.equal([false, false]);
  });
});

const context = { issuer: 'https://issuer.example/acme', configurations: [{ id: 'card', scope: 'card' }] };
const valid = {
  response_type: 'code',
  client_id: 'https://wallet.example',
  redirect_uri: 'https://wallet.example/cb',
  code_challenge: '_IhBZY88woJ6oD5MlABM04Aap43i2LzsA14HBhVnfos',
  code_challenge_method: 'S256',
  scope: 'card',
};
const parse = (change: Record<string, string>) => parseAuthorizationRequest({ ...valid, ...change }, context);
const errorCode = (change: Record<string, string>) => failureCode(() => parse(change));

describe('authorization request', () => {
  describe('with an accepted redirect URI', () => {
    const addresses = [
      'https://wallet.example/cb?keep=b%20c&flag&x=~y',
      'https://wallet.example',
      'HTTPS://Wallet.Example:443/cb',
      'https://wallet.example:8443/cb',
      'https://xn--wllet-gra.example/cb',
      'http://127.0.0.1:4711/cb',
      'http://[::1]:4711/cb',
      'http://localhost/cb',
      'openid4vp://',
      'eudi-openid4ci://authorize',
      'com.example.wallet:/cb',
      'haip-vci://',
    ];
    for (const redirect_uri of addresses) {
      it(redirect_uri, () => expect(parse({ redirect_uri }).redirectUri).to.equal(redirect_uri));
    }
  });

  describe('with a rejected redirect URI', () => {
    const schemes = [
      ...['javascript:alert(1)//', 'data:text/html,x', 'vbscript:x', 'file:///etc/passwd', 'blob:https://x.example/1'],
      ...['about:blank', 'ftp://x.example/', 'ws://x.example/', 'wss://x.example/', 'jar:https://x.example/a!/b'],
      ...['intent://x#Intent;end', 'intent://x', 'Intent://x', 'android-app://com.example/https/x.example'],
      ...['view-source:https://x.example', 'resource://x', 'chrome://settings', 'chrome-extension://abc/x'],
      ...[
        'moz-extension://abc/x',
        'ms-settings:privacy',
        'MS-word:ofe|u|x',
        'microsoft-edge:https://evil.example',
        'googlechrome://evil.example',
        'googlechromes://evil.example',
        'firefox://open-url?url=https://evil.example',
        'brave://open-url?url=https://evil.example',
        'opera-http://evil.example',
        'x-web-search://x',
        'shortcuts://run-shortcut?name=x',
        'slack://x',
        'zoommtg://x',
        'steam://run/1',
        'acme:/x',
        'acme.:/x',
        'acme..wallet:/x',
        'ms-msdt:/id',
        'search-ms:query=x',
      ],
      ...['mailto:mallory@x.example', 'sms:+123', 'tel:+123', 'content://x/y', 'filesystem:https://x.example/t'],
    ];
    const texts = [
      ...['https:evil.example', 'https:/evil.example', 'https:///evil.example', 'http:localhost/cb'],
      ...['https:\\\\evil.example', 'https://wallet.example\\@evil.example', 'https://evil.example\\.wallet.example'],
      ...['https://wallet.example@evil.example/', 'https://wallet.example:x@evil.example/', 'https://@evil.example/'],
      ...['https://ev%69l.example/', 'https://ｅvil.example/', 'https://evil。example/', 'http://2130706433/cb'],
      ...['http://0x7f.1/cb', 'http://wallet.example/cb', 'https://wallet.example/cb#part', 'wallet.example/cb'],
      ...['https://wallet.example/a b', ' https://wallet.example/', 'https://wallet.example/\r\nX: y'],
      ...[
        'htt\nps://wallet.example/',
        'https://wallet.example/é',
        'https://wallet.example/"',
        'com.example:/\\x',
        'com.example://wallet@evil.example/',
        'com.example://a:b@c/',
      ],
      `https://wallet.example/${'x'.repeat(2048)}`,
    ];
    for (const redirect_uri of [...schemes, ...texts]) {
      it(JSON.stringify(redirect_uri.slice(0, 60)), () => expect(errorCode({ redirect_uri })).to.equal('invalid_request'));
    }
  });

  it('names this issuer as its resource, or none', () => {
    expect(errorCode({ resource: context.issuer })).to.equal('accepted');
    expect(errorCode({ resource: 'https://issuer.example/other' })).to.equal('invalid_target');
  });

  it('has a state of bounded length', () => {
    expect(parse({ state: 's'.repeat(1024) }).state).to.have.length(1024);
    expect(errorCode({ state: 's'.repeat(1025) })).to.equal('invalid_request');
  });

  const details = (credential_configuration_id: string) => JSON.stringify([{ type: 'openid_credential', credential_configuration_id }]);

  it('requests existing credentials by scope or by details', () => {
    const { scope: _, ...unscoped } = valid;
    const { queries, ...byDetails } = parseAuthorizationRequest(
      { ...unscoped, authorization_details: details('card'), unknown: 'x' },
      context,
    );
    expect(byDetails).to.deep.equal({
      clientId: valid.client_id,
      redirectUri: valid.redirect_uri,
      codeChallenge: valid.code_challenge,
      credentialConfigurationIds: ['card'],
      byDetails: true,
    });
    expect(queries).to.deep.equal({ ...unscoped, authorization_details: JSON.parse(details('card')) });
    expect(parse({ scope: 'else  card ' })).to.include({ scope: 'card', byDetails: false });
    expect(errorCode({ scope: ' ' })).to.equal('invalid_scope');
    expect(errorCode({ authorization_details: details('else') })).to.equal('invalid_authorization_details');
  });

  it('requests no more credentials than a session can count', () => {
    const detailsWith = (count: number) => {
      const configurations = Array.from({ length: count }, (_, i) => ({ id: `c${i}`, scope: 'card' }));
      return () => parseAuthorizationRequest(valid, { ...context, configurations });
    };
    expect(detailsWith(30)().credentialConfigurationIds).to.have.length(30);
    expect(detailsWith(31)).to.throw('at most 30 credentials');
    const [detail] = JSON.parse(details('card')) as object[];
    const repeated = (count: number) => errorCode({ authorization_details: JSON.stringify(Array(count).fill(detail)) });
    expect([repeated(30), repeated(31)]).to.deep.equal(['accepted', 'invalid_authorization_details']);
  });

  describe('without a required challenge', () => {
    const { code_challenge, code_challenge_method, ...unchallenged } = valid;
    const requirements = { redirectUri: false, codeChallenge: false };

    it('is accepted without a challenge, and with a valid one', () => {
      expect(parseAuthorizationRequest(unchallenged, context, requirements)).to.not.have.property('codeChallenge');
      expect(parseAuthorizationRequest(valid, context, requirements)).to.include({ codeChallenge: code_challenge });
    });

    for (const [description, outdated] of Object.entries({
      'no method': { code_challenge },
      'the plain method': { code_challenge, code_challenge_method: 'plain' },
      'a method alone': { code_challenge_method },
      'a challenge that is invalid': { code_challenge: 'x', code_challenge_method },
    })) {
      it(`is rejected with ${description}`, () => {
        const form: Record<string, string> = { ...unchallenged, ...outdated };
        expect(() => parseAuthorizationRequest(form, context, requirements)).to.throw('code_challenge_method S256');
      });
    }

    it('is rejected without a challenge when one is required', () => {
      expect(() => parseAuthorizationRequest(unchallenged, context)).to.throw('code_challenge_method S256');
    });
  });

  it('is answered in the query; response_mode may be query or absent', () => {
    expect(errorCode({})).to.equal('accepted');
    expect(errorCode({ response_mode: 'query' })).to.equal('accepted');
    for (const response_mode of ['form_post', 'fragment', 'query.jwt', 'direct_post', 'QUERY']) {
      expect(errorCode({ response_mode }), response_mode).to.equal('invalid_request');
    }
  });

  describe('with a length limit, since it is stored with its grant, rejects', () => {
    const tooLong: [string, Record<string, string>, string][] = [
      ['scope', { scope: `card ${'x'.repeat(4092)}` }, 'invalid_request'],
      ['client_id', { client_id: `https://${'x'.repeat(4089)}` }, 'invalid_request'],
      ['dpop_jkt', { dpop_jkt: 'x'.repeat(4097) }, 'invalid_request'],
      ['interaction_types_supported', { interaction_types_supported: 'x,'.repeat(2049) }, 'invalid_request'],
      ['issuer_state', { issuer_state: 'x'.repeat(4097) }, 'invalid_request'],
    ];
    for (const [name, change, code] of tooLong) {
      it(`a long ${name}`, () => {
        expect(errorCode(change)).to.equal(code);
        const truncated = Object.entries(change).map(([key, value]) => [key, value.slice(0, 4096)]);
        expect(errorCode(Object.fromEntries(truncated))).to.equal('accepted');
      });
    }

    it('long authorization_details, even with unknown properties', () => {
      const details = (length: number) => {
        const text = (note: string) => JSON.stringify([{ type: 'openid_credential', credential_configuration_id: 'card', note }]);
        return text('x'.repeat(length - text('').length));
      };
      expect(errorCode({ authorization_details: details(16_384) })).to.equal('accepted');
      expect(errorCode({ authorization_details: details(16_385) })).to.equal('invalid_authorization_details');
    });
  });
});

const issuer = 'https://issuer.example/acme';
const parameters = 'code=c-1&state=s+1&iss=https%3A%2F%2Fissuer.example%2Facme';

describe('authorization response', () => {
  const addresses: readonly [string, string][] = [
    ['https://wallet.example/cb', '?'],
    ['https://wallet.example', '?'],
    ['https://wallet.example/cb?', ''],
    ['https://wallet.example/cb?a=b%20c&flag&x=~y', '&'],
    ['https://wallet.example/cb?a=b&', ''],
    ['https://Wallet.example:443/a/../cb?next=%2F', '&'],
    ['http://127.0.0.1:4711/cb?a', '&'],
    ['openid4vp://', '?'],
    ['com.example.wallet:/cb?x=~', '&'],
  ];
  for (const [address, separator] of addresses) {
    it(`preserves ${address} as the wallet wrote it (RFC 6749 section 3.1.2)`, () => {
      const location = authorizationResponse(address, { issuer, state: 's 1', code: 'c-1' });
      expect(location).to.equal(`${address}${separator}${parameters}`);
    });
  }

  it('cannot get other parameters from the state of the wallet', () => {
    const location = authorizationResponse('https://wallet.example/cb', { issuer, state: 'x&code=stolen#', error: 'access_denied' });
    const { searchParams, hash } = new URL(location);
    expect([...searchParams.keys(), hash]).to.deep.equal(['error', 'state', 'iss', '']);
  });
});

describe('redirect destination that is shown to users', () => {
  for (const [address, displayName] of [
    ['https://wallet.example/cb?x=y', 'wallet.example'],
    ['http://127.0.0.1:4711/cb', '127.0.0.1:4711'],
    ['com.example.wallet:/cb', 'com.example.wallet:'],
    ['haip-vci://evil.example', 'haip-vci:'],
  ] as const) {
    it(`of ${address} is ${displayName}`, () => expect(redirectDestination(address)).to.equal(displayName));
  }
});

describe('ConfirmWallet', () => {
  let logins: LoginWorld;

  before(async () => {
    logins = await LoginWorld.open();
  });

  /** Starts a login up to the page that asks the user about the wallet. */
  const detail = async () => {
    const login = await logins.start();
    const { fields } = (await logins.finish(login)) as Consent;
    return { ...login, confirmation: fields['confirmation'] };
  };
  type ConfirmationPage = Awaited<ReturnType<typeof detail>>;
  const confirm = ({ confirmation, browserSecrets }: ConfirmationPage, changes: Partial<Confirmation> = {}, tenantId = ACME) =>
    logins.world.confirmWallet.execute(tenantId, { decision: 'approve', confirmation, browserSecrets, ...changes });

  it('ends an approval with a code for the logged in user, and erases the identity from the authorization', async () => {
    const page = await detail();
    const { location, authorizationId } = await confirm(page);
    const { code = '', ...rest } = logins.redirectParameters(location);
    expect([rest, authorizationId]).to.deep.equal([{ state: AUTHORIZATION_REQUEST.state, iss: logins.server }, page.id]);
    const grant = (await logins.world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    expect(grant?.authorization?.identity?.sub).to.equal('ada');
    const authorization = await logins.storedAuthorization(page.id);
    expect(authorization).to.deep.include({ stage: 'done', handles: {} });
    expect(authorization).not.to.have.property('identity');
  });

  it('ends a denial with an error', async () => {
    const page = await detail();
    const { location } = await confirm(page, { decision: 'deny' });
    expect(logins.redirectParameters(location)).to.deep.equal(logins.errorParameters('access_denied'));
    expect(await logins.storedAuthorization(page.id)).to.deep.include({ stage: 'done', handles: {} });
    expect(await outcomeOf(confirm(page))).to.equal('invalid_request');
  });

  it('redirects to the wallet with an error if the offer has ended', async () => {
    const page = await detail();
    await logins.failSession(page);
    const { location } = await confirm(page);
    expect(logins.redirectParameters(location)).to.deep.equal(logins.errorParameters('access_denied'));
  });

  it('accepts one of two concurrent answers', async () => {
    const page = await detail();
    const outcomes = await Promise.all([outcomeOf(confirm(page)), outcomeOf(confirm(page, { decision: 'deny' }))]);
    expect(outcomes.sort()).to.deep.equal(['done', 'invalid_request']);
  });

  const mutations: readonly [description: string, mutate: (page: ConfirmationPage) => Partial<Confirmation>][] = [
    ['no decision', () => ({ decision: undefined })],
    ['another decision', () => ({ decision: 'perhaps' })],
    ['no name of a page', () => ({ confirmation: undefined })],
    ['an unknown page', () => ({ confirmation: 'unknown' })],
    ['a page with another secret', ({ confirmation }) => ({ confirmation: `${confirmation}A` })],
    ['the state of the login', ({ location }) => ({ confirmation: location.searchParams.get('state') ?? '' })],
    ['another browser', ({ id }) => ({ browserSecrets: new Map([[id, 'another']]) })],
    ['a browser without its cookie', () => ({ browserSecrets: new Map() })],
  ];
  for (const [description, mutate] of mutations) {
    it(`rejects ${description}, and the page can still be answered`, async () => {
      const page = await detail();
      expect(await outcomeOf(confirm(page, mutate(page)))).to.equal('invalid_request');
      expect(await outcomeOf(confirm(page))).to.equal('done');
    });
  }

  it('expires after half an hour', async () => {
    const page = await detail();
    expect(await logins.world.afterSeconds(1800, () => outcomeOf(confirm(page)))).to.equal('invalid_request');
  });

  it('fails once the tenant has removed the server, or for an unknown tenant', async () => {
    const page = await detail();
    expect(await outcomeOf(confirm(page, {}, 'unknown' as TenantId))).to.equal('not_found');
    await logins.configure({ enabled: false });
    expect(await outcomeOf(confirm(page))).to.equal('not_found');
    await logins.configure();
    expect(await outcomeOf(confirm(page))).to.equal('done');
  });
});
