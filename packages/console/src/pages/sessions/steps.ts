import { jsonOfBase64 } from '../../../../wallet/src/core/formats/base64.ts';
import { readCertificate } from './certificate.ts';
import type { DeferredRecord } from './deferred-record.ts';
import { cborInWords } from './mdoc-elements.ts';
import { queryInWords } from './query-in-words.ts';
import type { DeliveryRecord, SessionRecord } from './session-record.ts';

export type Step = {
  readonly title: string;
  /** Undefined where the interface keeps no time for it. */
  readonly at?: string;
  readonly tone: 'good' | 'bad' | 'open';
  /** The same for people who do not read JSON. */
  readonly words?: readonly string[];
  readonly record: Readonly<Record<string, unknown>>;
  readonly delivery?: DeliveryRecord;
};

export function stepsOf(session: SessionRecord, deferred: readonly DeferredRecord[] = []): readonly Step[] {
  const isIssuance = session.kind === 'issuance';
  const { offer, offerUrl, requestUrl, requestObject, isoMdocRequest } = session;
  const { clientId, auth_queries, credentialPayload } = session;
  const steps: Step[] = [
    {
      title: isIssuance ? 'Offer made' : 'Asked',
      at: session.createdAt,
      tone: 'good',
      words: isIssuance ? [] : wordsOf(requestObject),
      record: isIssuance
        ? { Link: offerUrl, Offer: offer, Request: credentialPayload }
        : {
            Link: requestUrl,
            Query: offer,
            'Request object': decoded(requestObject),
            'DeviceRequest, in diagnostic notation': cborInWords(isoMdocRequest?.deviceRequest),
            'EncryptionInfo, in diagnostic notation': cborInWords(isoMdocRequest?.encryptionInfo),
            Request: credentialPayload,
            Verifier: clientId,
          },
    },
  ];
  if (session.status !== 'active' && wasRead(session))
    steps.push({
      title: isIssuance ? 'Read by a wallet' : 'Fetched by a wallet',
      ...(session.status === 'fetched' && { at: session.updatedAt }),
      tone: 'good',
      record: {},
    });
  if (auth_queries !== undefined) steps.push({ title: 'Authorization asked for', tone: 'good', record: { Parameters: auth_queries } });
  steps.push(...timed(session, deferred), ...endOf(session));
  return steps;
}

function wasRead({ status, attempts, report, failure }: SessionRecord): boolean {
  if (status === 'fetched' || status === 'completed') return true;
  return (attempts ?? report) !== undefined || (failure !== undefined && failure.code !== 'cancelled');
}

type TimedStep = Step & { readonly at: string };

const PROOFS = {
  attestation: 'An attestation of its provider said which wallet it is.',
  key: 'It proved by a key that is registered here which wallet it is.',
  none: 'It did not prove which wallet it is.',
} as const;

function authorized({ authorizedAt, tokenAt, walletAuthentication }: SessionRecord): TimedStep[] {
  const words = walletAuthentication === undefined ? [] : [PROOFS[walletAuthentication]];
  const tone = 'good' as const;
  return [
    ...(authorizedAt === undefined ? [] : [{ title: 'Authorized by the user', at: authorizedAt, tone, record: {} }]),
    ...(tokenAt === undefined ? [] : [{ title: 'Token given to the wallet', at: tokenAt, tone, words, record: {} }]),
  ];
}

/** Such as `200, 142 ms`. */
function callOf({ status, durationMs }: DeliveryRecord): string {
  const said = [status, durationMs === undefined ? undefined : `${durationMs} ms`].filter((part) => part !== undefined);
  return said.length === 0 ? '' : ` (${said.join(', ')})`;
}

function timed(session: SessionRecord, deferred: readonly DeferredRecord[]): Step[] {
  const { attempts = [], deliveries = [], notifications } = session;
  const steps: TimedStep[] = [
    ...authorized(session),
    ...deferred.flatMap(deferredSteps),
    ...attempts.map(({ at, code, reason, ...record }) => ({
      title: `Refused to the wallet: ${code}`,
      at,
      tone: 'bad' as const,
      record: { Reason: reason, ...record },
    })),
    ...deliveries.map((delivery) => ({
      title: `${delivery.webhook === 'claims' ? 'Claims asked of the backend' : `Webhook of the ${delivery.webhook}`}: ${delivery.result}${callOf(delivery)}`,
      at: delivery.at,
      tone: ({ delivered: 'good', failed: 'bad', pending: 'open' } as const)[delivery.result],
      record: { Delivery: delivery },
      delivery,
    })),
    ...notifications.map((told) => ({
      title: `Wallet notified: ${told.event}`,
      at: told.at,
      tone: told.event === 'credential_accepted' ? ('good' as const) : ('bad' as const),
      record: { Notification: told },
    })),
  ];
  return steps.sort((step, otherStep) => step.at.localeCompare(otherStep.at));
}

const DECIDED = {
  ready: 'Completed, waits for the wallet',
  retrieved: 'Completed, and fetched by the wallet',
  failed: 'Refused',
  expired: 'Nobody decided in time',
} as const;

function deferredSteps(transaction: DeferredRecord): TimedStep[] {
  const { credentialConfigurationId: name, status, createdAt, updatedAt, expiresAt } = transaction;
  const begun: TimedStep = {
    title: `Deferred: ${name}`,
    at: createdAt,
    tone: status === 'pending' ? 'open' : 'good',
    record: { Transaction: transaction },
  };
  if (status === 'pending') return [begun];
  const tone = status === 'ready' ? 'open' : status === 'retrieved' ? 'good' : 'bad';
  const at = status === 'expired' ? expiresAt : updatedAt;
  return [begun, { title: `${DECIDED[status]}: ${name}`, at, tone, record: {} }];
}

function endOf({ status, kind, updatedAt, failure, credentials }: SessionRecord): Step[] {
  if (status === 'active' || status === 'fetched') return [];
  if (status === 'completed')
    return [{ title: kind === 'issuance' ? 'Collected' : 'Accepted', at: updatedAt, tone: 'good', record: { Credentials: credentials } }];
  const record = { Failure: failure, Credentials: credentials };
  return [{ title: status === 'expired' ? 'Expired' : `Failed: ${failure?.code ?? ''}`, at: updatedAt, tone: 'bad', record }];
}

function wordsOf(requestObject: string | undefined): readonly string[] {
  const { header, payload } = decoded(requestObject) ?? {};
  return [...queryInWords(membersOf(payload)['dcql_query']), ...chainOf(membersOf(header)['x5c'])];
}

function chainOf(x5c: unknown): readonly string[] {
  return (Array.isArray(x5c) ? x5c : []).flatMap((text, index) => {
    const summary = readCertificate(text);
    if (summary === undefined) return ['A certificate that cannot be read.'];
    const { subject, issuer, notAfter, daysLeft } = summary;
    const day = notAfter.toISOString().slice(0, 10);
    const end = daysLeft < 0 ? `ended on ${day}` : `${daysLeft} days left, until ${day}`;
    return [`${index === 0 ? 'Signed by' : 'vouched for by'} ${subject}, certified by ${issuer}; ${end}.`];
  });
}

function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

/** Header and payload of a JWT. */
function decoded(jwt: string | undefined) {
  if (jwt === undefined) return undefined;
  const [header = '', payload = ''] = jwt.split('.');
  return { header: partOf(header), payload: partOf(payload) };
}

function partOf(text: string): unknown {
  try {
    return jsonOfBase64(text);
  } catch {
    return text;
  }
}
