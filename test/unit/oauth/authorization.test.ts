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
import { endOf } from '../wallet-kit.ts';
import { LoginWorld } from './kit.ts';

const STAGES = Object.keys(NEXT_STAGES) as AuthorizationStage[];

describe('authorization state', () => {
  for (const stage of STAGES) {
    for (const next of STAGES) {
      const follows = (NEXT_STAGES[stage] as readonly string[]).includes(next);
      it(`${stage} ${follows ? 'changes' : 'never changes'} to ${next}`, () => {
        const move = () => advance({ stage, version: 3 } as Authorization, { stage: next });
        if (follows) expect(move()).to.include({ stage: next, version: 4 });
        else expect(move).to.throw(`cannot change to ${next}`);
      });
    }
  }

  it('has no interaction at its end without one before', () => {
    expect(advance({ stage: 'pushed', version: 1 } as Authorization, { stage: 'done' })).to.deep.equal({ stage: 'done', version: 2 });
  });

  it('is opened by the first browser, with its request or to a page', () => {
    const web = { kind: 'web', browserHash: 'h' };
    const opened = (pending: object | undefined, isOpened?: boolean) =>
      wasOpenedInBrowser({ isOpened, interaction: { pending } } as unknown as Authorization);
    expect([opened(web), opened(undefined, true), opened({ kind: 'web' }, true)]).to.deep.equal(Array(3).fill(true));
    expect([opened({ kind: 'web' }), opened({ kind: 'presentation' }), opened(undefined)]).to.deep.equal(Array(3).fill(false));
  });
});

describe('handle of an authorization', () => {
  const [id, secret] = ['i'.repeat(16), 's'.repeat(20)];
  const now = new Date('2026-06-01T12:00:00Z');
  const later = new Date('2026-06-01T12:00:01Z');
  const made = { id, stage: 'opened', expiresAt: later, handles: { page: hashSecret(secret) } };
  const current = (changes: object = {}, handle = createHandle(id, secret)) =>
    isCurrentHandle({ ...made, ...changes } as unknown as Authorization, 'page', handle, now);

  it('is valid for its purpose until the authorization ends', () => {
    expect(current()).to.equal(true);
    const other = createHandle('j'.repeat(16), secret);
    const wrong = [
      current({ stage: 'done' }),
      current({ expiresAt: now }),
      current({ handles: {} }),
      current({}, other),
      current({}, createHandle(id, 't'.repeat(20))),
      current({}, 'nonsense'),
      isCurrentHandle(undefined, 'page', other, now),
    ];
    expect(wrong).to.deep.equal(Array(7).fill(false));
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
const read = (change: Record<string, string>) => parseAuthorizationRequest({ ...valid, ...change }, context);
const refusal = (change: Record<string, string>) => failureCode(() => read(change));

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
      it(redirect_uri, () => expect(read({ redirect_uri }).redirectUri).to.equal(redirect_uri));
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
      it(JSON.stringify(redirect_uri.slice(0, 60)), () => expect(refusal({ redirect_uri })).to.equal('invalid_request'));
    }
  });

  it('names this issuer as its resource, or none', () => {
    expect(refusal({ resource: context.issuer })).to.equal('taken');
    expect(refusal({ resource: 'https://issuer.example/other' })).to.equal('invalid_target');
  });

  it('has a state of bounded length', () => {
    expect(read({ state: 's'.repeat(1024) }).state).to.have.length(1024);
    expect(refusal({ state: 's'.repeat(1025) })).to.equal('invalid_request');
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
    expect(read({ scope: 'else  card ' })).to.include({ scope: 'card', byDetails: false });
    expect(refusal({ scope: ' ' })).to.equal('invalid_scope');
    expect(refusal({ authorization_details: details('else') })).to.equal('invalid_authorization_details');
  });

  it('requests no more credentials than a session can count', () => {
    const many = (count: number) => {
      const configurations = Array.from({ length: count }, (_, i) => ({ id: `c${i}`, scope: 'card' }));
      return () => parseAuthorizationRequest(valid, { ...context, configurations });
    };
    expect(many(30)().credentialConfigurationIds).to.have.length(30);
    expect(many(31)).to.throw('at most 30 credentials');
    const [asked] = JSON.parse(details('card')) as object[];
    const by = (count: number) => refusal({ authorization_details: JSON.stringify(Array(count).fill(asked)) });
    expect([by(30), by(31)]).to.deep.equal(['taken', 'invalid_authorization_details']);
  });

  describe('without a required challenge', () => {
    const { code_challenge, code_challenge_method, ...unchallenged } = valid;
    const needs = { redirectUri: false, codeChallenge: false };

    it('is accepted without a challenge, and with a valid one', () => {
      expect(parseAuthorizationRequest(unchallenged, context, needs)).to.not.have.property('codeChallenge');
      expect(parseAuthorizationRequest(valid, context, needs)).to.include({ codeChallenge: code_challenge });
    });

    for (const [what, wrong] of Object.entries({
      'no method': { code_challenge },
      'the plain method': { code_challenge, code_challenge_method: 'plain' },
      'a method alone': { code_challenge_method },
      'a challenge that is invalid': { code_challenge: 'x', code_challenge_method },
    })) {
      it(`is rejected with ${what}`, () => {
        const form: Record<string, string> = { ...unchallenged, ...wrong };
        expect(() => parseAuthorizationRequest(form, context, needs)).to.throw('code_challenge_method S256');
      });
    }

    it('is rejected without a challenge when one is required', () => {
      expect(() => parseAuthorizationRequest(unchallenged, context)).to.throw('code_challenge_method S256');
    });
  });

  it('is answered in the query; response_mode may be query or absent', () => {
    expect(refusal({})).to.equal('taken');
    expect(refusal({ response_mode: 'query' })).to.equal('taken');
    for (const response_mode of ['form_post', 'fragment', 'query.jwt', 'direct_post', 'QUERY']) {
      expect(refusal({ response_mode }), response_mode).to.equal('invalid_request');
    }
  });

  describe('with a length limit, since it is stored with its grant, rejects', () => {
    const long: [string, Record<string, string>, string][] = [
      ['scope', { scope: `card ${'x'.repeat(4092)}` }, 'invalid_request'],
      ['client_id', { client_id: `https://${'x'.repeat(4089)}` }, 'invalid_request'],
      ['dpop_jkt', { dpop_jkt: 'x'.repeat(4097) }, 'invalid_request'],
      ['interaction_types_supported', { interaction_types_supported: 'x,'.repeat(2049) }, 'invalid_request'],
      ['issuer_state', { issuer_state: 'x'.repeat(4097) }, 'invalid_request'],
    ];
    for (const [name, change, code] of long) {
      it(`a long ${name}`, () => {
        expect(refusal(change)).to.equal(code);
        const shorter = Object.entries(change).map(([key, value]) => [key, value.slice(0, 4096)]);
        expect(refusal(Object.fromEntries(shorter))).to.equal('taken');
      });
    }

    it('long authorization_details, even with unknown properties', () => {
      const details = (length: number) => {
        const text = (note: string) => JSON.stringify([{ type: 'openid_credential', credential_configuration_id: 'card', note }]);
        return text('x'.repeat(length - text('').length));
      };
      expect(refusal({ authorization_details: details(16_384) })).to.equal('taken');
      expect(refusal({ authorization_details: details(16_385) })).to.equal('invalid_authorization_details');
    });
  });
});

const issuer = 'https://issuer.example/acme';
const sent = 'code=c-1&state=s+1&iss=https%3A%2F%2Fissuer.example%2Facme';

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
      expect(location).to.equal(`${address}${separator}${sent}`);
    });
  }

  it('cannot get other parameters from the state of the wallet', () => {
    const location = authorizationResponse('https://wallet.example/cb', { issuer, state: 'x&code=stolen#', error: 'access_denied' });
    const { searchParams, hash } = new URL(location);
    expect([...searchParams.keys(), hash]).to.deep.equal(['error', 'state', 'iss', '']);
  });
});

describe('redirect destination that is shown to users', () => {
  for (const [address, told] of [
    ['https://wallet.example/cb?x=y', 'wallet.example'],
    ['http://127.0.0.1:4711/cb', '127.0.0.1:4711'],
    ['com.example.wallet:/cb', 'com.example.wallet:'],
    ['haip-vci://evil.example', 'haip-vci:'],
  ] as const) {
    it(`of ${address} is ${told}`, () => expect(redirectDestination(address)).to.equal(told));
  }
});

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
  const confirm = ({ confirmation, browserSecrets }: Asked, changes: Partial<Confirmation> = {}, tenantId = ACME) =>
    logins.world.confirmWallet.execute(tenantId, { decision: 'approve', confirmation, browserSecrets, ...changes });

  it('ends an approval with a code for the logged in user, and erases the identity from the authorization', async () => {
    const page = await asked();
    const { location, authorizationId } = await confirm(page);
    const { code = '', ...rest } = logins.told(location);
    expect([rest, authorizationId]).to.deep.equal([{ state: AUTHORIZATION_REQUEST.state, iss: logins.server }, page.id]);
    const grant = (await logins.world.store.read(ACME).grantByCode(hashCode(code)))?.grant;
    expect(grant?.authorization?.identity?.sub).to.equal('ada');
    const done = await logins.stored(page.id);
    expect(done).to.deep.include({ stage: 'done', handles: {} });
    expect(done).not.to.have.property('identity');
  });

  it('ends a denial with an error', async () => {
    const page = await asked();
    const { location } = await confirm(page, { decision: 'deny' });
    expect(logins.told(location)).to.deep.equal(logins.refusal('access_denied'));
    expect(await logins.stored(page.id)).to.deep.include({ stage: 'done', handles: {} });
    expect(await endOf(confirm(page))).to.equal('invalid_request');
  });

  it('redirects to the wallet with an error if the offer has ended', async () => {
    const page = await asked();
    await logins.end(page);
    const { location } = await confirm(page);
    expect(logins.told(location)).to.deep.equal(logins.refusal('access_denied'));
  });

  it('accepts one of two concurrent answers', async () => {
    const page = await asked();
    const ends = await Promise.all([endOf(confirm(page)), endOf(confirm(page, { decision: 'deny' }))]);
    expect(ends.sort()).to.deep.equal(['done', 'invalid_request']);
  });

  const bends: readonly [what: string, bend: (page: Asked) => Partial<Confirmation>][] = [
    ['no decision', () => ({ decision: undefined })],
    ['another decision', () => ({ decision: 'perhaps' })],
    ['no name of a page', () => ({ confirmation: undefined })],
    ['an unknown page', () => ({ confirmation: 'unknown' })],
    ['a page with another secret', ({ confirmation }) => ({ confirmation: `${confirmation}A` })],
    ['the state of the login', ({ location }) => ({ confirmation: location.searchParams.get('state') ?? '' })],
    ['another browser', ({ id }) => ({ browserSecrets: new Map([[id, 'another']]) })],
    ['a browser without its secret', () => ({ browserSecrets: new Map() })],
  ];
  for (const [what, bend] of bends) {
    it(`rejects ${what}, and the page can still be answered`, async () => {
      const page = await asked();
      expect(await endOf(confirm(page, bend(page)))).to.equal('invalid_request');
      expect(await endOf(confirm(page))).to.equal('done');
    });
  }

  it('expires after half an hour', async () => {
    const page = await asked();
    expect(await logins.world.later(1800, () => endOf(confirm(page)))).to.equal('invalid_request');
  });

  it('fails once the tenant has removed the server, or for an unknown tenant', async () => {
    const page = await asked();
    expect(await endOf(confirm(page, {}, 'nobody' as TenantId))).to.equal('not_found');
    await logins.configure({ enabled: false });
    expect(await endOf(confirm(page))).to.equal('not_found');
    await logins.configure();
    expect(await endOf(confirm(page))).to.equal('done');
  });
});
