import { parseArgs } from 'node:util';

export const USAGE = `npx vidimus attack [<issuer | offer | request link>…] [options]

Runs attacks on OpenID4VCI issuers and OpenID4VP verifiers that you operate, and says which of them worked.

What is attacked
  --offer <uri>                  one credential offer; may be repeated, each is used once
  --offer-command <command>      prints a fresh credential offer at each run; may be repeated, one for each kind of offer
  --tx-code <code>               the transaction code of offers that demand one
  --other-issuer <url>           a second issuer of the same service, to which nothing of the first may be worth anything
  --request <link>               one presentation request; may be repeated
  --request-command <command>    prints a fresh request link at each run; may be repeated
  --result-command <command>     told REQUEST_LINK, prints "accepted" or "refused"; for verifiers that answer 200 to everything
  --vidimus <url>                makes offers and requests by the REST API of Vidimus, with
    --client-id <id>               a client of the tenant
    --client-secret <secret>       its secret; or VIDIMUS_CLIENT_SECRET in the environment
    --configuration <id>           a credential configuration to offer; may be repeated
    --presentation <id>            a presentation configuration to ask; may be repeated

What the wallet has
  --wallet-client-id <id>        client_id of the wallet (https://wallet.example)
  --redirect-uri <uri>           where codes are sent (https://wallet.example/callback)
  --approve-command <command>    told AUTHORIZATION_URL, logs in, approves and prints where the browser was sent
  --credential <file>            a credential to present, with
    --holder-key <file>            its private key as JWK; both may be repeated, in the same order
  --revoked-credential <file>    a credential that was revoked, with --revoked-holder-key <file>
  --expired-credential <file>    a credential that has expired, with --expired-holder-key <file>

How
  --i-operate-this <host>        you operate this host, which is not this machine: it is called slowly and never raced
  --only <family>                this family alone; may be repeated
  --json <file>                  writes all outcomes as JSON
  --list                         lists the families and their cases

Ends with 0 when nothing is open, 1 when something is, 2 when something could not be run.`;

const repeatableOption = { type: 'string', multiple: true, default: [] as string[] } as const;
const singleOption = { type: 'string' } as const;

export type Options = ReturnType<typeof readOptions>;

/** @throws Error for unknown options. */
export function readOptions(args: readonly string[]) {
  const { values, positionals } = parseArgs({
    args: [...args],
    allowPositionals: true,
    options: {
      offer: repeatableOption,
      'offer-command': repeatableOption,
      'tx-code': singleOption,
      'other-issuer': singleOption,
      request: repeatableOption,
      'request-command': repeatableOption,
      'result-command': singleOption,
      vidimus: singleOption,
      'client-id': singleOption,
      'client-secret': singleOption,
      configuration: repeatableOption,
      presentation: repeatableOption,
      'wallet-client-id': { type: 'string', default: 'https://wallet.example' },
      'redirect-uri': { type: 'string', default: 'https://wallet.example/callback' },
      'approve-command': singleOption,
      credential: repeatableOption,
      'holder-key': repeatableOption,
      'revoked-credential': singleOption,
      'revoked-holder-key': singleOption,
      'expired-credential': singleOption,
      'expired-holder-key': singleOption,
      'i-operate-this': repeatableOption,
      only: repeatableOption,
      json: singleOption,
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const offers = positionals.filter(isOffer);
  const requests = positionals.filter((single) => !isOffer(single) && isRequest(single));
  const issuers = positionals.filter((single) => !isOffer(single) && !isRequest(single));
  if (issuers.length > 1) throw new Error(`one issuer is attacked at a time: ${issuers.join(', ')}`);
  if (values.credential.length !== values['holder-key'].length) throw new Error('each --credential needs its --holder-key');
  return { ...values, issuer: issuers[0], offer: [...values.offer, ...offers], request: [...values.request, ...requests] };
}

const isOffer = (text: string) => text.includes('credential_offer=') || text.includes('credential_offer_uri=');
const isRequest = (text: string) => text.includes('request_uri=');
