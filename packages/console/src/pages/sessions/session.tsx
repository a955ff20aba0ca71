import { useContext, useEffect, useRef, useState } from 'preact/hooks';
import { ask } from '../../api/call.ts';
import { Badge } from '../../parts/badge.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { Copy } from '../../parts/copy.tsx';
import { JsonView } from '../../parts/json-view.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Qr } from '../../parts/qr.tsx';
import { Reachable } from '../../parts/reachable.tsx';
import { Time } from '../../parts/time.tsx';
import { ValueTree } from '../../parts/value-tree.tsx';
import { focus } from '../../shell/keep-focus.ts';
import { Openable } from '../../shell/openable.ts';
import type { PageProps } from '../../shell/page-props.ts';
import { linkTo } from '../../shell/place.ts';
import { openInPhone } from '../phone/wanted.ts';
import { Deferred } from './deferred.tsx';
import { useDeferred } from './deferred-record.ts';
import { useSession } from './follow-session.ts';
import { MdocElements } from './mdoc-view.tsx';
import { OnRecord } from './on-record.tsx';
import { SessionActions } from './session-actions.tsx';
import { isOpen, type SessionRecord } from './session-record.ts';
import { Timeline } from './session-timeline.tsx';
import { Verdict } from './verdict.tsx';

/** One session while it happens. */
export function SessionPage({ identity, id }: PageProps) {
  const { session, fault, again } = useSession(identity, id);
  const deferral = useDeferred(identity, session);
  if (session === undefined) return fault === undefined ? <p aria-busy="true">Loading</p> : <Problem fault={fault} />;
  return (
    <>
      <p>
        <a href={linkTo('sessions')}>All sessions</a>
      </p>
      <h1>
        {session.kind === 'issuance' ? 'Offer' : 'Request'} of {session.configurationIds.join(', ')}
      </h1>
      <p>
        <span aria-live="polite">
          <Badge status={session.status} />
        </span>{' '}
        <code>{id}</code> {session.reference} made <Time at={session.createdAt} />
      </p>
      {fault !== undefined && <Problem fault={fault} />}
      <SessionActions identity={identity} session={session} again={again} />
      <Deferred identity={identity} state={deferral} again={again} />
      <Verdict session={session} />
      {isOpen(session) && <Invitation session={session} />}
      <Timeline identity={identity} session={session} deferred={deferral.deferred} again={again} />
      <Standing session={session} />
      <OnRecord identity={identity} id={id} since={session} />
      <Values identity={identity} id={id} session={session} />
    </>
  );
}

function Standing({ session: { id, kind, status } }: { readonly session: SessionRecord }) {
  const mayOpen = useContext(Openable).includes('status');
  if (!mayOpen || kind !== 'issuance' || status === 'active') return null;
  return (
    <p>
      <a href={linkTo('status', '', { session: id })}>Its entries in the status lists</a>
    </p>
  );
}

function Invitation({ session }: { readonly session: SessionRecord }) {
  const link = linkOf(session);
  if (link === undefined) return null;
  return (
    <section class="card" aria-labelledby="link">
      <h2 id="link">For a wallet</h2>
      <Qr text={link} label="QR code of the link for a wallet" />
      <p>
        <code>{link}</code> <Copy text={link} label="Copy link" />
      </p>
      <button type="button" onClick={() => openInPhone(link)}>
        Open in the phone of this window
      </button>
      <Reachable link={link} />
    </section>
  );
}

/** A page of the Digital Credentials API asks by itself, without a link. */
function linkOf({ offerUrl, requestUrl, clientId, useDcApi }: SessionRecord): string | undefined {
  if (offerUrl !== undefined) return offerUrl;
  if (useDcApi || requestUrl === undefined || clientId === undefined) return undefined;
  return `openid4vp://?${new URLSearchParams({ client_id: clientId, request_uri: requestUrl })}`;
}

function Values({ identity, id, session }: PageProps & { readonly session: SessionRecord }) {
  const [whole, setWhole] = useState<SessionRecord>();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => focus(heading.current), [whole]);
  const show = async () => {
    setWhole(await ask(identity, 'POST', `/session/${encodeURIComponent(id)}/show`));
    return 'This is on record.';
  };
  if (whole !== undefined) {
    const { failure, credentials, credentialPayload, transaction_data, auth_queries } = whole;
    const values = { failure, credentials, credentialPayload, transaction_data, auth_queries };
    return (
      <>
        <MdocElements session={whole} />
        <section class="card" aria-labelledby="values">
          <h2 id="values" ref={heading}>
            Values
          </h2>
          <ValueTree value={values} />
          <details>
            <summary>As JSON</summary>
            <JsonView label="With values" value={values} />
          </details>
        </section>
      </>
    );
  }
  return (
    <>
      <MdocElements session={session} />
      <Confirm label="Show values" title="Show values of persons" act={show}>
        <p>The audit log gets an entry that you looked at them.</p>
      </Confirm>
    </>
  );
}
