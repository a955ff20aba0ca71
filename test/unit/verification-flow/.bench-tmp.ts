import 'reflect-metadata';
import { World, present, formOf, ACME, query } from './kit.ts';
for (const mode of ['direct_post.jwt', 'direct_post']) {
const world = await World.make();
await world.configure({ responseMode: mode, webhook: null, dcql_query: query({id:'card', claims:[{path:['name']},{path:['age']},{path:['over18']}]}) });
const N=2000;
const cpu=()=>{const {user,system}=process.cpuUsage();return (user+system)/1000};
const caller = await world.caller();
async function round(n){
 const t=[0,0,0,0]; 
 const offers=[]; let a=cpu();
 for(let i=0;i<n;i++) offers.push(await world.createPresentationRequest.execute(caller,{response_type:'uri',requestId:'card'}));
 let b=cpu(); t[0]=b-a;
 const sessions=[]; for(const o of offers) sessions.push(await world.session(o.session));
 a=cpu();
 for(const s of sessions) await world.serveRequestObject.execute(ACME,s.publicId);
 b=cpu(); t[1]=b-a;
 const forms=[]; for(const s of sessions){const asked={tenantId:ACME,session:s,publicId:s.publicId,request:s.request,claims:{},text:''}; forms.push(await formOf(asked,{card:[present(world,asked)]}));}
 a=cpu();
 for(let i=0;i<n;i++) await world.receiveResponse.execute(ACME,sessions[i].publicId,forms[i]);
 b=cpu(); t[2]=b-a;
 return t.map(x=>(x/n).toFixed(3));
}
await round(300);
console.log(mode,'offer, request, response ms CPU:', await round(N));
}
