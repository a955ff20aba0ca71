import { bad, denied, type Family } from '../core/case.ts';
import { newKey } from '../core/jwt.ts';
import { Skip } from '../core/skip.ts';
import { table } from '../core/table.ts';
import type { Issuer } from '../targets/issuer.ts';
import { PRE_AUTHORIZED } from '../targets/offers.ts';
import { obtainToken } from './common.ts';

const GRANT = denied('invalid_grant', 'invalid_client', 'invalid_request');
const redeem = (change: Record<string, string | undefined>) => async (issuer: Issuer) => {
  const source = issuer.source('pre');
  return issuer.tokenRequest({ ...issuer.redemption(await source.next()), ...change });
};
const withTx = (code: string | undefined) => async (issuer: Issuer) => {
  const offer = await issuer.source('tx').next();
  return issuer.tokenRequest({ ...issuer.redemption(offer), tx_code: code });
};

export const preAuthorized: Family<Issuer> = {
  id: 'pre-authorized',
  title: 'Pre-authorized codes at the token endpoint',
  control: obtainToken,
  cases: [
    ...table<Issuer>(
      { section: 'OpenID4VCI 1.0 section 6.3', why: 'only a code that was offered, and only once', safe: GRANT },
      {
        'a code that was used': async (issuer) => {
          const { offer } = await issuer.token();
          return issuer.tokenRequest(issuer.redemption(offer));
        },
        // Before that, an issuer may repeat its response for a wallet that did not receive it.
        'a code whose credential was issued, with the key of the first time': async (issuer) => {
          const grant = await issuer.token();
          await issuer.issue(grant);
          const { offer, key } = grant;
          return issuer.tokenRequest(issuer.redemption(offer), { key });
        },
        'a code that was guessed': redeem({ 'pre-authorized_code': 'guessed' }),
        'a code with a character more': async (issuer) => {
          const offer = await issuer.source('pre').next();
          return issuer.tokenRequest({ ...issuer.redemption(offer), 'pre-authorized_code': `${offer.preCode}a` });
        },
        'a code with a NUL in it': redeem({ 'pre-authorized_code': 'a\0b' }),
        'a very long code': redeem({ 'pre-authorized_code': 'x'.repeat(5000) }),
        'the code of another issuer': async (issuer) => {
          const otherIssuer = issuer.options['other-issuer'];
          if (otherIssuer === undefined) throw new Skip('no --other-issuer was given');
          const offer = await issuer.source('pre').next();
          const url = issuer.endpoint('token_endpoint').replace(issuer.id, otherIssuer);
          if (!url.startsWith(otherIssuer)) throw new Skip('the other issuer has its token endpoint elsewhere');
          return issuer.bound(url, (proof) => issuer.http.form(url, issuer.redemption(offer), proof), { key: newKey() });
        },
        'the state of an offer as its code': async (issuer) => {
          const { issuerState } = await issuer.source('code').next();
          if (issuerState === undefined) throw new Skip('offers have no issuer_state');
          return issuer.tokenRequest({ grant_type: PRE_AUTHORIZED, 'pre-authorized_code': issuerState, ...issuer.clientFields() });
        },
      },
    ),
    ...table<Issuer>(
      {
        section: 'OpenID4VCI 1.0 section 6.1',
        why: 'a request without a code asks for nothing',
        safe: bad('invalid_request', 'invalid_grant'),
      },
      {
        'no code': redeem({ 'pre-authorized_code': undefined }),
        'an empty code': redeem({ 'pre-authorized_code': '' }),
        'the code under its name in camel case': async (issuer) => {
          const offer = await issuer.source('pre').next();
          return issuer.tokenRequest({ grant_type: PRE_AUTHORIZED, pre_authorized_code: offer.preCode });
        },
      },
    ),
    ...table<Issuer>(
      {
        section: 'RFC 9396 section 6',
        why: 'a token is for what was offered and not more',
        safe: bad('invalid_authorization_details', 'invalid_grant', 'invalid_request'),
      },
      {
        'more than was offered': redeem({
          authorization_details: JSON.stringify([{ type: 'openid_credential', credential_configuration_id: 'never-offered' }]),
        }),
        'details that are no JSON': redeem({ authorization_details: '[{' }),
      },
    ),
    {
      name: 'a transaction code that was not asked for',
      section: 'OpenID4VCI 1.0 section 6.3',
      why: 'the server expects none',
      safe: bad('invalid_request', 'invalid_grant'),
      run: redeem({ tx_code: '123456' }),
    },
  ],
};

export const txCode: Family<Issuer> = {
  id: 'tx-code',
  title: 'Transaction codes',
  async control(issuer) {
    await issuer.token(issuer.source('tx'));
  },
  cases: [
    ...table<Issuer>(
      {
        section: 'OpenID4VCI 1.0 section 6.3',
        why: 'whoever has the offer alone gets nothing',
        safe: bad('invalid_request', 'invalid_grant', 'invalid_tx_code'),
      },
      {
        'no transaction code': withTx(undefined),
        'an empty transaction code': withTx(''),
        'a wrong transaction code': withTx('000001'),
        'a transaction code of another length': withTx('1'),
        'a very long transaction code': withTx('9'.repeat(5000)),
        'the right code with a space': async (issuer) => withTx(` ${issuer.source('tx').txCode}`)(issuer),
        'the right code in other digits': async (issuer) => {
          const wide = issuer.source('tx').txCode.replaceAll(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));
          return withTx(wide)(issuer);
        },
        'two transaction codes, one of them right': async (issuer) => {
          const source = issuer.source('tx');
          const fields = Object.entries(issuer.redemption(await source.next()));
          return issuer.tokenRequest([...fields, ['tx_code', '000001'], ['tx_code', source.txCode]]);
        },
      },
    ),
    {
      name: 'the right code after twenty wrong ones',
      section: 'OpenID4VCI 1.0 section 13.6.3',
      why: 'a short code must not be found by trying',
      safe: bad('invalid_grant'),
      async run(issuer) {
        const source = issuer.source('tx');
        const offer = await source.next();
        for (let tries = 0; tries < 20; tries++) {
          await issuer.tokenRequest({ ...issuer.redemption(offer), tx_code: String(100_000 + tries) });
        }
        return issuer.tokenRequest(issuer.redemption(offer, source.txCode));
      },
    },
  ],
};
