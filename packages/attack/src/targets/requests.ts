import { expectSuccess, NoControl } from '../core/case.ts';
import { runCommand } from '../core/command.ts';
import type { HttpClient, Json } from '../core/http.ts';
import { headerOf, payloadOf } from '../core/jwt.ts';
import type { Options } from '../core/options.ts';
import { Skip } from '../core/skip.ts';
import type { VidimusApi } from './vidimus-api.ts';

/** A fetched presentation request. */
export type FetchedRequest = {
  readonly link: string;
  /** URL of the request object. */
  readonly url: string;
  readonly clientId: string;
  readonly text: string;
  readonly header: Json;
  readonly payload: Json;
  /** The Vidimus that created it. */
  readonly session: string | undefined;
};

type Link = { readonly uri: string; readonly session?: string };

/** Requests with the same query. */
export class RequestSource {
  readonly query: Json;
  readonly #http: HttpClient;
  readonly #make: () => Promise<Link>;
  #first: FetchedRequest | undefined;

  constructor(http: HttpClient, make: () => Promise<Link>, firstRequest: FetchedRequest) {
    this.query = firstRequest.payload.dcql_query ?? {};
    this.#http = http;
    this.#make = make;
    this.#first = firstRequest;
  }

  /** A fetched and unanswered request. @throws Skip when there are no more. */
  async next(): Promise<FetchedRequest> {
    const firstRequest = this.#first;
    this.#first = undefined;
    return firstRequest ?? fetchRequest(this.#http, await this.#make());
  }
}

export async function openRequests(http: HttpClient, options: Options, api?: VidimusApi): Promise<RequestSource[]> {
  const makers = options['request-command'].map((command) => async () => ({ uri: await runCommand(command) }));
  if (api !== undefined) {
    const { presentation } = options;
    const ids = presentation.length > 0 ? presentation : await api.ids('/verifier/config');
    for (const requestId of ids.slice(0, 6)) makers.push(() => api.make('/verifier/offer', { requestId }));
  }
  const sources: RequestSource[] = [];
  for (const make of makers) sources.push(new RequestSource(http, make, await fetchRequest(http, await make())));
  for (const uri of options.request) sources.push(new RequestSource(http, noRequestLeft, await fetchRequest(http, { uri })));
  return sources;
}

async function noRequestLeft(): Promise<Link> {
  throw new Skip('no fresh request is left; give --request-command');
}

/** OpenID4VP 1.0 section 5.10. */
async function fetchRequest(http: HttpClient, { uri, session }: Link): Promise<FetchedRequest> {
  const parameters = new URLSearchParams(uri.slice(uri.indexOf('?') + 1));
  const url = parameters.get('request_uri');
  if (url === null) throw new NoControl('this is no link with a request_uri');
  const { text } = expectSuccess(await http.call(url), 'fetching the request object');
  const header = headerOf(text);
  return { link: uri, url, clientId: parameters.get('client_id') ?? '', text, header, payload: payloadOf(text), session };
}
