import type { Consent } from '../../../application/oauth/show-authorization.ts';
import { escapeHtml, page } from './page.ts';

/** Asks the user whether the wallet shall have the credentials. */
export function consentPage({
  issuerName,
  credentials,
  clientId,
  decision,
  requestUri,
  action,
}: Consent): string {
  const title = `${issuerName}: add to your wallet?`;
  const items = credentials.map((name) => `<li>${escapeHtml(name)}</li>`).join('\n');
  const hidden = (name: string, value: string) =>
    `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`;
  return page(
    title,
    `<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(issuerName)} will issue to your wallet:</p>
<ul>
${items}
</ul>
<form method="post" action="${escapeHtml(action)}">
${hidden('client_id', clientId)}
${hidden('request_uri', requestUri)}
${hidden('decision_token', decision)}
<button type="submit" class="primary" id="approve" name="decision" value="approve">Approve</button>
<button type="submit" class="secondary" id="deny" name="decision" value="deny">Deny</button>
</form>
<p class="note">Wallet: ${escapeHtml(clientId)}</p>`,
  );
}
