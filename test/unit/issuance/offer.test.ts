import { expect } from 'chai';
import { readProofs, resolveConfiguration } from '../../../domain/issuance/credential-request.ts';
import { checkOfferRequest, composeOffer, OfferRequest, offerLink } from '../../../domain/issuance/offer.ts';
import type { WalletTokenClaims } from '../../../domain/oauth/access-token.ts';
import { PRE_AUTHORIZED_CODE_GRANT } from '../../../domain/oauth/token-request.ts';
import { Failure } from '../../../domain/shared/failure.ts';
import type { JsonObject } from '../../../domain/shared/json.ts';
import { aConfiguration, ISSUER } from './kit.ts';

const OTHER = 'https://as.example';

const ended = (work: () => unknown) => {
  try {
    work();
    return 'done';
  } catch (error) {
    if (error instanceof Failure) return error.details.errors?.[0]?.path ?? error.code;
    throw error;
  }
};

const written = (changes: object = {}) =>
  OfferRequest.parse({
    ...{ response_type: 'uri', flow: 'authorization_code', credentialConfigurationIds: ['card'] },
    ...changes,
  });
const PRE_AUTHORIZED = { flow: 'pre_authorized_code' };

describe('A request for an offer', () => {
  const known = new Map([
    ['card', { interactive: false }],
    ['visitor', { interactive: true }],
  ]);
  const check = (changes: object, servers: readonly string[]) =>
    ended(() => checkOfferRequest(written(changes), { known, servers, issuer: ISSUER }));
  const visiting = { credentialConfigurationIds: ['visitor'] };
  const cases: readonly [string, object, readonly string[], string][] = [
    ['for a code, where the built-in server is on', PRE_AUTHORIZED, [ISSUER], 'done'],
    ['for a code, where it is off', PRE_AUTHORIZED, [OTHER], 'flow'],
    ['for a login elsewhere, where it is off', {}, [OTHER], 'done'],
    ['for a login at a server', { authorization_server: OTHER }, [ISSUER, OTHER], 'done'],
    ['for a login at nobody', { authorization_server: 'x' }, [ISSUER, OTHER], 'authorization_server'],
    [
      'for a code at the built-in server',
      { ...PRE_AUTHORIZED, authorization_server: ISSUER },
      [ISSUER, OTHER],
      'done',
    ],
    [
      'for a code at another',
      { ...PRE_AUTHORIZED, authorization_server: OTHER },
      [ISSUER, OTHER],
      'authorization_server',
    ],
    ['for a visit, where the built-in server is on', visiting, [ISSUER], 'done'],
    ['for a visit, where it is off', visiting, [OTHER], 'credentialConfigurationIds.0'],
    ['for a visit by code', { ...visiting, ...PRE_AUTHORIZED }, [ISSUER], 'flow'],
    ['with a transaction code', { ...PRE_AUTHORIZED, tx_code: '1234' }, [ISSUER], 'done'],
    [
      'with a transaction code and words about it',
      { ...PRE_AUTHORIZED, tx_code: '1234', tx_code_description: 'by post' },
      [ISSUER],
      'done',
    ],
    [
      'with words about none',
      { ...PRE_AUTHORIZED, tx_code_description: 'x' },
      [ISSUER],
      'tx_code_description',
    ],
    ['for a login, with a transaction code', { tx_code: '1234' }, [ISSUER], 'tx_code'],
    ['for a login, with words about one', { tx_code_description: 'by post' }, [ISSUER], 'tx_code'],
  ];
  for (const [what, changes, servers, expected] of cases) {
    it(`${expected === 'done' ? 'is taken' : 'is refused'} ${what}`, () =>
      expect(check(changes, servers)).to.equal(expected));
  }

  it('has a transaction code that a user can enter', () => {
    const takes = (tx_code: string) => {
      const { success } = OfferRequest.safeParse({ ...written(), ...PRE_AUTHORIZED, tx_code });
      return success;
    };
    for (const code of ['1234', 'a b', 'ä-1']) expect(takes(code), code).to.equal(true);
    for (const code of [' 1234', '1234 ', 'a\u0000b', 'a\u2028b', ''])
      expect(takes(code), code).to.equal(false);
  });
});

describe('An offer', () => {
  const byCode = (changes: object, servers: readonly string[]) => {
    const request = written({ ...PRE_AUTHORIZED, ...changes });
    const { grants } = composeOffer(ISSUER, request, { preAuthorizedCode: 'c' }, servers);
    return (grants as JsonObject)[PRE_AUTHORIZED_CODE_GRANT];
  };
  const byLogin = (changes: object, servers: readonly string[]) =>
    composeOffer(ISSUER, written(changes), { issuerState: 's' }, servers)['grants'];

  it('names a server only where there are several, and one is meant', () => {
    const code = { 'pre-authorized_code': 'c' };
    expect(byCode({}, [ISSUER])).to.deep.equal(code);
    expect(byCode({}, [ISSUER, OTHER])).to.deep.equal({ ...code, authorization_server: ISSUER });
    const login = { issuer_state: 's' };
    expect(byLogin({}, [ISSUER, OTHER])).to.deep.equal({ authorization_code: login });
    expect(byLogin({ authorization_server: OTHER }, [OTHER])).to.deep.equal({ authorization_code: login });
    expect(byLogin({ authorization_server: OTHER }, [ISSUER, OTHER])).to.deep.equal({
      authorization_code: { ...login, authorization_server: OTHER },
    });
  });

  it('tells of a transaction code what the user has to know', () => {
    const told = (changes: object) => (byCode(changes, [ISSUER]) as JsonObject)['tx_code'];
    expect(told({ tx_code: '1234' })).to.deep.equal({ input_mode: 'numeric', length: 4 });
    expect(told({ tx_code: 'ab1', tx_code_description: 'by post' })).to.deep.equal({
      ...{ input_mode: 'text', length: 3, description: 'by post' },
    });
  });
});

describe('The link of an offer', () => {
  const link = (invocationUri?: string) => {
    const request = OfferRequest.safeParse({
      ...{ response_type: 'uri', flow: 'authorization_code', credentialConfigurationIds: ['card'] },
      ...(invocationUri !== undefined && { invocationUri }),
    });
    return request.success ? offerLink('https://i.example/o', request.data.invocationUri) : 'refused';
  };
  const query = 'credential_offer_uri=https%3A%2F%2Fi.example%2Fo';

  it('starts any wallet, those of a profile, or the own one', () => {
    expect(link()).to.equal(`openid-credential-offer://?${query}`);
    expect(link('haip-vci://')).to.equal(`haip-vci://?${query}`);
    expect(link('https://wallet.example/add?from=acme')).to.equal(
      `https://wallet.example/add?from=acme&${query}`,
    );
  });

  it('starts nothing else', () => {
    for (const other of [
      'javascript://',
      'http://wallet.example',
      'intent://x',
      'ms-word://',
      'https://a b',
      '',
    ]) {
      expect(link(other), other).to.equal('refused');
    }
  });
});

describe('A request for a credential', () => {
  const token = (changes: Partial<WalletTokenClaims> = {}) =>
    ({ credentialConfigurationIds: ['card'], identifiers: false, ...changes }) as WalletTokenClaims;
  const find = (id: string) => (['card', 'pass'].includes(id) ? aConfiguration({ id }) : undefined);
  const named = (body: JsonObject, claims = token()) => {
    let id = '';
    const end = ended(() => {
      id = resolveConfiguration(body, claims, find).id;
    });
    return end === 'done' ? id : end;
  };
  const byId = (id: unknown) => ({ credential_configuration_id: id }) as JsonObject;
  const byIdentifier = (id: unknown) => ({ credential_identifier: id }) as JsonObject;

  it('names it by its configuration, or by an identifier of the token', () => {
    expect(named(byId('card'))).to.equal('card');
    expect(named(byIdentifier('card'), token({ identifiers: true }))).to.equal('card');
    const configurationOfIdentifier = new Map([['theirs', 'card']]);
    const foreign = token({ identifiers: true, configurationOfIdentifier });
    expect(named(byIdentifier('theirs'), foreign)).to.equal('card');
    expect(named(byIdentifier('card'), foreign)).to.equal('unknown_credential_identifier');
  });

  it('names it by its configuration, although the token has identifiers', () => {
    const configurationOfIdentifier = new Map([['theirs', 'card']]);
    expect(named(byId('card'), token({ identifiers: true }))).to.equal('card');
    expect(named(byId('card'), token({ identifiers: true, configurationOfIdentifier }))).to.equal('card');
    expect(named(byId('theirs'), token({ identifiers: true, configurationOfIdentifier }))).to.equal(
      'unknown_credential_configuration',
    );
  });

  it('is told what is wrong with the name', () => {
    const identified = token({ identifiers: true });
    expect([{}, { ...byId('card'), ...byIdentifier('card') }].map((body) => named(body))).to.deep.equal(
      Array(2).fill('invalid_credential_request'),
    );
    for (const id of [7, null, ['card']]) {
      expect(named(byId(id))).to.equal('invalid_credential_request');
      expect(named(byIdentifier(id), identified)).to.equal('invalid_credential_request');
    }
    expect(named(byIdentifier('card'))).to.equal('unknown_credential_identifier');
    expect(named(byIdentifier('pass'), identified)).to.equal('unknown_credential_identifier');
    expect(named(byId('else'))).to.equal('unknown_credential_configuration');
    expect(named(byId('pass'))).to.equal('insufficient_scope');
    expect(named(byId('pass'), identified)).to.equal('insufficient_scope');
  });

  it('brings proofs of one type, and at least one', () => {
    const proofs = (given: JsonObject) => () => readProofs({ proofs: given }, { keyBinding: true }, 3);
    for (const given of [
      {},
      { jwt: ['a'], attestation: ['b'] },
      { undefined: ['a'] },
      { attestation: ['a'] },
    ]) {
      expect(proofs(given)).to.throw('send exactly one proof type, of: jwt');
    }
    for (const given of [[], 'a', [7]]) {
      expect(proofs({ jwt: given })).to.throw('must be a non-empty array of strings');
    }
  });
});
