# frozen_string_literal: true

# What the Vagrantfile needs beside Vagrant and vagrant-libvirt: the lab's definition, starts in turn, and deadlines
# with messages that say what to do.

require "json"
require "open3"
require "rexml/document"

module Minigts
  # The versions whose inner parts the steps below were tried with. They were not made to be relied on: with others,
  # what has gone from them is left out, and a warning says so.
  TRIED = { "vagrant" => %w[2.3.4 2.3.7], "vagrant-libvirt" => %w[0.11.2 0.12.2] }.freeze

  PROJECT = File.expand_path("../..", __dir__)
  PROGRAM = File.join(PROJECT, "minigts")

  # Shown by Vagrant as its message alone, without a backtrace.
  class Problem < Vagrant::Errors::VagrantError
    def initialize(message)
      @said = message
      super()
    end

    def error_message
      @said
    end
  end

  class << self
    def defined_by_caller?
      ENV.key?("MINIGTS_DEFINITION")
    end

    # The lab that the caller has defined already (minigts up), or that of Vagrant's machines or of TOPOLOGY. Vagrant
    # reads the Vagrantfile more than once.
    def definition
      @definition ||= JSON.parse(defined_by_caller? ? File.read(ENV["MINIGTS_DEFINITION"]) : asked)
    end

    # One of the definition's machines.
    def machine(name)
      definition["machines"].find { |one| one["name"] == name.to_s }
    end

    # Has minigts do what follows from a change of a machine.
    def tell(verb)
      return if system(PROGRAM, "libvirt", verb, "--directory", directory)

      raise Problem, "The machines are as Vagrant says, and the lab is not configured: see above."
    end

    # Once a message for each, however many machines there are.
    def warn_of(lacking)
      @warned ||= []
      return if @warned.include?(lacking)

      @warned << lacking
      warn "minigts: this vagrant-libvirt has no #{lacking}; minigts was tried with vagrant " \
           "#{TRIED["vagrant"].join(", ")} and vagrant-libvirt #{TRIED["vagrant-libvirt"].join(", ")}. Going on without."
    end

    private

    # What it says of its progress, or of what is wrong, is on the terminal already: there is nothing to add.
    def asked
      topology = ENV["TOPOLOGY"].to_s
      words = topology.empty? ? [] : [File.expand_path(topology, PROJECT)]
      said, ended = Open3.capture2(PROGRAM, "libvirt", "definition", "--directory", directory, *start, "--", *words)
      exit(ended.exitstatus || 1) unless ended.success?

      said
    end

    # Words behind a verb that starts machines may name some; what else they are, minigts does not mind.
    def start
      verb, *words = ARGV.reject { |word| word.start_with?("-") }
      return [] unless %w[up reload].include?(verb)

      ["--start", *words.map { |word| "--machine=#{word}" }]
    end

    def directory
      chosen = ENV["VAGRANT_DOTFILE_PATH"].to_s
      File.expand_path(chosen.empty? ? ".vagrant" : chosen, PROJECT)
    end
  end

  # Machines boot so many at a time: emulated ones that share a processor only run into each other's limits.
  class InTurn
    @lock = Mutex.new

    class << self
      def turns(count)
        @lock.synchronize { @turns ||= SizedQueue.new(count).tap { |queue| count.times { queue << :turn } } }
      end

      attr_accessor :at_once
    end

    def initialize(app, _env)
      @app = app
      @turns = self.class.turns(self.class.at_once || 1)
    end

    # The rest of the chain, which ends when the machine answers over SSH, or has failed to.
    def call(env)
      turn = @turns.pop
      @app.call(env)
    ensure
      @turns << turn if turn
    end
  end

  # What vagrant-libvirt has no word for, set in the machine's definition before it starts.
  class Domain
    class << self
      attr_accessor :translated_mib
    end

    def initialize(app, _env)
      @app = app
    end

    def call(env)
      amend(env[:machine])
      @app.call(env)
    end

    private

    def amend(machine)
      client = client_of(machine)
      return unless client

      domain = REXML::Document.new(client.lookup_domain_by_uuid(machine.id).xml_desc(1))
      before = domain.to_s
      limit_cache(domain)
      write_console(domain, Minigts.machine(machine.name)["console"])
      client.define_domain_xml(domain.to_s) unless domain.to_s == before
    end

    def client_of(machine)
      %i[provider driver connection client].reduce(machine) do |part, name|
        return Minigts.warn_of(name) unless part.respond_to?(name)

        part.public_send(name)
      end
    end

    # QEMU translates a guest's code into a cache of a gibibyte for each machine, all of which it touches, unless it is
    # told otherwise. libvirt.org/formatdomain.html#hypervisor-features
    def limit_cache(domain)
      return unless self.class.translated_mib

      features = domain.elements["/domain/features"]
      return if features.elements["tcg"]

      features.add_element("tcg").add_element("tb-cache", "unit" => "MiB").text = self.class.translated_mib
    end

    # vagrant-libvirt puts a path into its XML as it is, whatever it means there. And the file is the user's already:
    # without `append` the daemon that writes it makes another in its place, which only root may read.
    # libvirt.org/formatdomain.html#consoles-serial-parallel-channel-devices
    def write_console(domain, path)
      %w[serial console].each do |kind|
        device = domain.elements["/domain/devices/#{kind}"]
        next if device.nil? || device.attributes["type"] == "file"

        device.add_attribute("type", "file")
        device.delete_element("source")
        device.add_element("source", "path" => path, "append" => "on")
      end
    end
  end

  # vagrant-libvirt asks three hundred times, for ten minutes, and then shows a backtrace.
  class Deadline
    def initialize(app, _env)
      @app = app
    end

    def call(env)
      machine = env[:machine]
      limit = machine.config.vm.boot_timeout
      deadline = now + limit
      until env[:interrupted] || address(machine)
        raise Problem, explanation(machine, limit) if now > deadline

        sleep 0.5
      end
      @app.call(env)
    end

    private

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end

    # Something that is not nil where nobody can be asked, too: then vagrant-libvirt waits as it likes.
    def address(machine)
      driver = machine.provider.driver
      return Minigts.warn_of(:get_ipaddress) || true unless driver.respond_to?(:get_ipaddress)

      driver.get_ipaddress
    rescue Fog::Errors::TimeoutError
      nil
    end

    def explanation(machine, limit)
      console = Minigts.machine(machine.name)["console"]
      "#{machine.name} got no address within #{limit} s. What it says is in #{console}: if that is nothing, see " \
        "`minigts doctor`; if it has booted, the network #{machine.provider_config.management_network_name} gives no " \
        "addresses: see `virsh net-list --all`, and that no firewall stops DHCP on its bridge."
    end
  end

  # Vagrant runs these around the steps of vagrant-libvirt; without that plugin there is nothing to run around.
  class Plugin < Vagrant.plugin("2")
    name "minigts"

    if defined?(VagrantPlugins::ProviderLibvirt::Action)
      steps = VagrantPlugins::ProviderLibvirt::Action
      { InTurn => :StartDomain, Domain => :StartDomain, Deadline => :WaitTillUp }.each do |ours, step|
        next Minigts.warn_of(step) unless steps.const_defined?(step)

        action_hook("minigts-#{ours.name}", steps.const_get(step)) { |hook| hook.before(steps.const_get(step), ours) }
      end
    end
  end
end
