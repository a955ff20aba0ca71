import { createReadStream } from 'node:fs';
import { createInterface } from 'node:readline';

/** A request by the document that was answered with 400, as one fault of it tells. */
export type RejectedRequest = { readonly operation: string; readonly path: string; readonly message: string };

/** Messages for rules that no schema expresses. Any other rejection of an allowed request is reported. */
const NO_SCHEMA_SAYS: Readonly<Record<string, RegExp>> = {
  'other things of the tenant':
    /there is no (such )?(key chain|kms provider|presentation configuration|credential configuration|authorization server)|is not one of the expectedOrigins|is not for the usage|is for other usages|is for other things|have others than these|verifiers of these credentials do not trust|what the authority of this key chain|came from outside|this credential has no signing key yet|use one of authServers|no authorization server is left|the offer has no such credential configuration|no registrar is configured|signs no credentials|answered with status|has 1 bit/i,
  'keys, certificates and documents of others':
    /certificates? as PEM|PEM certificate|is not for this key|private key on|a public key for ES256|registration certificate cannot be used|trust list cannot be used|does not accept this|send the password/i,
  'where the service may call': /is a blocked address/,
  'what is stored, of which a change is a part':
    /cannot be changed|a client that manages tenants|is only allowed for (mso_mdoc|dc\+sd-jwt)|requires a document type|set either claims or|an mdoc requires at least one element|is always bound to a key/,
  'how members go together':
    /may be listed once|only a list of public bodies|sign with dcApiRequest multisigned alone|only supports mdocs|supports one signer|name the additional signing key chains|is described twice|is listed twice|needs (requestEncryption|statusManagement|keyBinding)|can only be required|hosts no metadata|but (disclosureFrame|claims|the schema)|disclosure frame|the configuration has no claim|name the same thing|is not how (it is signed|.* is bound)|supported formats|supported types|no (credential query|claim) has this id|every claim needs an id|another (set|claim|query) has|no claims to choose|pre-authorized code flow|tx_code is required/i,
  'what is JSON, and what is text':
    /one complete JSON object|the body (has|nests)|not a JSON object|was sent more than once|control characters|contains (a )?NUL|only client_credentials|grant_type: is missing|grant_type is missing|has to be at most 9007199254740991/,
};

/** @param file of Schemathesis, with an event in each line. */
export async function unexpectedRefusals(file: string): Promise<readonly RejectedRequest[]> {
  const rejectedRequests = new Map<string, RejectedRequest>();
  for await (const line of createInterface({ input: createReadStream(file) })) {
    const { recorder } = (JSON.parse(line) as Event).ScenarioFinished ?? {};
    for (const [id, { value }] of Object.entries(recorder?.cases ?? {})) {
      const answer = recorder?.interactions?.[id]?.response;
      if (value.meta?.generation?.mode !== 'positive' || answer?.status_code !== 400) continue;
      for (const fault of parseFaults(answer.content?.$base64 ?? '')) {
        if (Object.values(NO_SCHEMA_SAYS).some((pattern) => pattern.test(fault.message))) continue;
        const operation = `${value.method} ${recorder?.label ?? ''}`;
        rejectedRequests.set(JSON.stringify([operation, fault.message]), { operation, ...fault });
      }
    }
  }
  return [...rejectedRequests.values()];
}

type Event = {
  readonly ScenarioFinished?: {
    readonly recorder?: {
      readonly label: string;
      readonly cases?: Readonly<Record<string, { readonly value: Case }>>;
      readonly interactions?: Readonly<Record<string, { readonly response?: RecordedResponse | null }>>;
    };
  };
};
type Case = { readonly method: string; readonly meta?: { readonly generation?: { readonly mode?: string } } | null };
type RecordedResponse = { readonly status_code: number; readonly content?: { readonly $base64?: string } | null };

function parseFaults(base64: string): readonly Omit<RejectedRequest, 'operation'>[] {
  const text = Buffer.from(base64, 'base64').toString('utf8');
  try {
    const { errors, detail, error_description } = JSON.parse(text) as {
      readonly errors?: readonly { readonly path: string; readonly message: string }[];
      readonly detail?: string;
      readonly error_description?: string;
    };
    return errors ?? [{ path: '', message: detail ?? error_description ?? text }];
  } catch {
    return [{ path: '', message: text }];
  }
}
