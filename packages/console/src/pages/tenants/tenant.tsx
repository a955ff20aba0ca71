import { ask } from '../../api/call.ts';
import { Badge } from '../../parts/badge.tsx';
import { Confirm } from '../../parts/confirm.tsx';
import { Problem } from '../../parts/problem.tsx';
import { Time } from '../../parts/time.tsx';
import { useAsked } from '../../parts/use-asked.ts';
import { openLogin } from '../../shell/another-login.tsx';
import { choose, type Identity, identities } from '../../shell/identities.ts';
import { goTo, linkTo } from '../../shell/place.ts';

type Tenant = {
  readonly id: string;
  readonly name: string;
  readonly description: string | null;
  readonly status: string;
  readonly endsAt: string | null;
  readonly createdAt: string;
  readonly clients: readonly { readonly clientId: string; readonly roles: readonly string[] }[];
};

/** One tenant, as those see it who manage tenants: its credentials and sessions are for its own clients. */
export function TenantPage({ identity, id }: { readonly identity: Identity; readonly id: string }) {
  const path = `/tenant/${encodeURIComponent(id)}`;
  const { value: tenant, fault, again } = useAsked<Tenant>(identity, path);
  return (
    <>
      <p class="fine">
        <a href={linkTo('tenants')}>All tenants</a>
      </p>
      <h1>Tenant {id}</h1>
      {fault !== undefined && <Problem fault={fault} />}
      {tenant === undefined && fault === undefined && <p aria-busy="true">Reading the tenant</p>}
      {tenant !== undefined && (
        <>
          <p>
            <Badge status={tenant.status} /> {tenant.name}, made <Time at={tenant.createdAt} />
            {tenant.endsAt !== null && (
              <>
                , ends <Time at={tenant.endsAt} />
              </>
            )}
          </p>
          {tenant.description !== null && <p>{tenant.description}</p>}
          <NextSteps tenant={tenant} />
          <Actions identity={identity} tenant={tenant} path={path} again={again} />
          <p>
            <a href={linkTo('audit', '', { tenant: id })}>Audit log of {id}</a>
          </p>
          <Clients tenant={tenant} />
        </>
      )}
    </>
  );
}

function NextSteps({ tenant: { id, status } }: { readonly tenant: Tenant }) {
  const having = (role: string) => identities.value.find(({ tenantId, roles }) => tenantId === id && roles.includes(role));
  const steps = [
    { page: 'credentials', text: 'What it issues: make a credential', who: having('issuance:manage') },
    { page: 'questions', text: 'What it asks: make a question', who: having('presentation:manage') },
  ].flatMap(({ who, ...step }) => (who === undefined ? [] : [{ ...step, clientId: who.clientId }]));
  if (steps.length === 0 || status !== 'active') return null;
  const goOn = (event: Event, page: string, clientId: string) => {
    // The link goes away with who one was, and would then lead nowhere.
    event.preventDefault();
    goTo(page, 'new');
    choose(clientId);
  };
  return (
    <section aria-labelledby="next">
      <h2 id="next">Next</h2>
      <ul>
        {steps.map(({ page, text, clientId }) => (
          <li key={page}>
            <a href={linkTo(page, 'new')} onClick={(event) => goOn(event, page, clientId)}>
              {text}
            </a>{' '}
            <span class="fine">as {clientId}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

type ActionProps = { readonly identity: Identity; readonly tenant: Tenant; readonly path: string; readonly again: () => void };

function Actions({ identity, tenant: { id, status }, path, again }: ActionProps) {
  const isActive = status === 'active';
  const change = async () => {
    await ask(identity, 'PATCH', path, { body: { status: isActive ? 'suspended' : 'active' } });
    again();
    return isActive ? `${id} serves nobody now.` : `${id} serves again.`;
  };
  const remove = async (form: FormData) => {
    if (form.get('id') !== id) throw new Error('That is another id.');
    await ask(identity, 'DELETE', path);
    goTo('tenants');
    return `${id} is gone.`;
  };
  return (
    <div class="doings">
      <Confirm
        label={isActive ? 'Suspend' : 'Activate'}
        title={isActive ? `Suspend ${id}?` : `Activate ${id}?`}
        isGrave={isActive}
        act={change}
      >
        <p>
          {isActive
            ? 'Neither wallets nor clients are answered any more; status lists stay published. It can be activated again.'
            : 'Wallets and clients are answered again.'}
        </p>
      </Confirm>
      <Confirm label="Delete" title={`Delete ${id}?`} isGrave act={remove}>
        <p>Everything of it goes, also its status lists: nobody can check what it issued. That cannot be undone.</p>
        <label>
          Its id, to be sure
          <input name="id" required spellcheck={false} autocapitalize="none" autocomplete="off" />
        </label>
      </Confirm>
    </div>
  );
}

function Clients({ tenant: { clients } }: { readonly tenant: Tenant }) {
  const known = new Set(identities.value.map(({ clientId }) => clientId));
  const goOn = (clientId: string) => {
    choose(clientId);
    // A page that it may open; which one that is depends on its roles.
    goTo('credentials');
  };
  return (
    <section aria-labelledby="clients">
      <h2 id="clients">Clients</h2>
      <p>Credentials, questions and sessions of a tenant are for its clients: log in as one, and choose at the top who you are.</p>
      <button type="button" class="quiet" onClick={openLogin}>
        Log in as a client
      </button>
      {clients.length === 0 && <p class="empty">It has none.</p>}
      <ul>
        {clients.map(({ clientId, roles }) => (
          <li key={clientId}>
            <code>{clientId}</code> <span class="fine">{roles.join(', ')}</span>{' '}
            {known.has(clientId) && (
              <button type="button" class="quiet small" onClick={() => goOn(clientId)}>
                Go on as {clientId}
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
