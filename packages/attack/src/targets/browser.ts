import { NoControl } from '../core/case.ts';
import { runCommand } from '../core/command.ts';
import type { Answer, HttpClient } from '../core/http.ts';
import type { Options } from '../core/options.ts';

const MOST_PAGES = 8;
const APPROVES = /approve|allow|accept|agree|confirm|continue|yes|grant|login|submit/i;

/** A user who approves everything: follows redirects within the server, and submits the form of each page. */
export class Browser {
  readonly #http: HttpClient;
  readonly #command: string | undefined;
  readonly #redirectUri: string;

  constructor(http: HttpClient, options: Options) {
    this.#http = http;
    this.#command = options['approve-command'];
    this.#redirectUri = options['redirect-uri'];
  }

  /** @returns the redirect to the client. */
  async approve(url: string): Promise<string> {
    if (this.#command !== undefined) return runCommand(this.#command, { AUTHORIZATION_URL: url });
    const cookies = new Map<string, string>();
    let currentUrl = url;
    let answer = await this.#http.call(currentUrl);
    for (let pages = 0; pages < MOST_PAGES; pages++) {
      keepCookies(cookies, answer);
      const headers = { Cookie: [...cookies].map((pair) => pair.join('=')).join('; ') };
      const { location } = answer.headers;
      if (location?.startsWith(this.#redirectUri)) return location;
      if (location !== undefined) {
        currentUrl = new URL(location, currentUrl).href;
        answer = await this.#http.call(currentUrl, { headers });
        continue;
      }
      const form = formOf(answer.text);
      if (answer.status !== 200 || form === undefined) break;
      currentUrl = new URL(form.action ?? currentUrl, currentUrl).href;
      answer = await this.#http.form(currentUrl, form.fields, headers);
    }
    throw new NoControl(`the page of the authorization endpoint was not understood (${answer.status}); give --approve-command`);
  }
}

function keepCookies(cookies: Map<string, string>, { headers }: Answer): void {
  for (const cookie of (headers['set-cookie'] ?? '').split(/,(?=\s*[\w-]+=)/)) {
    const [, name, value] = /^\s*([^=;\s]+)=([^;]*)/.exec(cookie) ?? [];
    if (name !== undefined) cookies.set(name, value ?? '');
  }
}

/** The first form of a page, with its hidden fields and the approval button. */
export function formOf(html: string): { action: string | undefined; fields: [string, string][] } | undefined {
  const [, head, inside = ''] = /<form\b([^>]*)>([\s\S]*?)<\/form>/i.exec(html) ?? [];
  if (head === undefined) return undefined;
  const tags = [...inside.matchAll(/<(input|button)\b([^>]*)>/gi)].map(([, , attributes = '']) => ({
    type: attribute(attributes, 'type')?.toLowerCase(),
    name: attribute(attributes, 'name'),
    value: attribute(attributes, 'value') ?? '',
  }));
  const namedTags = tags.filter((tag): tag is typeof tag & { name: string } => tag.name !== undefined);
  const buttons = namedTags.filter(({ type }) => type === 'submit' || type === undefined);
  const button = buttons.find(({ name, value }) => APPROVES.test(`${value} ${name}`)) ?? buttons[0];
  const fields = namedTags.filter(({ type }) => type === 'hidden').map(({ name, value }): [string, string] => [name, value]);
  if (button !== undefined) fields.push([button.name, button.value]);
  return { action: attribute(head, 'action'), fields };
}

function attribute(tag: string, name: string): string | undefined {
  const match = new RegExp(`\\b${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s>]+))`, 'i').exec(tag);
  const text = match?.[1] ?? match?.[2] ?? match?.[3];
  return text
    ?.replaceAll(/&#(\d+);/g, (_, code: string) => String.fromCodePoint(Number(code)))
    .replaceAll('&quot;', '"')
    .replaceAll('&lt;', '<')
    .replaceAll('&gt;', '>')
    .replaceAll('&amp;', '&');
}
